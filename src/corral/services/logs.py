"""The log of a service by its name, while it runs and after."""

from __future__ import annotations

import os

from corral.errors import NotFoundError
from corral.kernel import identity
from corral.kernel.pidfd import Pinned, pin
from corral.model.tuples import NamedTuple
from corral.services import environments, running, service_log, stopping
from corral.services.launching import check_name
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.services.context import Context
    from corral.services.running import Service

_PAUSE = 0.1
_TEXT_LIMIT = 1 << 20


class Log(NamedTuple):
    """A service's log: its path, whether something runs under the name, and what."""

    name: str
    path: str
    running: bool
    service: Service


def find_log(context: Context, name: str) -> Log:
    """The log of the service of that name in the context's environment. NotFoundError without."""
    environment = environments.require(context)
    service = stopping.find(context, environment, check_name(name))
    directory = statedir.environment_dir(context.state_dir, environment.id)
    path = service_log.log_path(directory, name)
    earlier = service_log.open_log(path)
    fd = None if _in_foreground(service) else earlier
    if fd is None:
        more = ""
        if earlier is not None:
            os.close(earlier)
            more = f"; an earlier detached run wrote {path}"
        raise NotFoundError(
            f"{name} has no log: it runs in the foreground",
            remedy=f"its output is where it was started; --detach writes a log{more}",
            resource=name,
        )
    os.close(fd)
    return Log(name, path, bool(service.alive), service)


def _in_foreground(service: Service) -> bool:
    """Whether what runs under the name now writes no log; it may have had one before."""
    runs = bool(service.alive or service.starting)
    return runs and service.detail.get("log", "") is None


def write_log(log: Log, write: Callable[[bytes], None]) -> None:
    """Write all that the log holds now."""
    service_log.follow(log.path, write, lambda: True)


def text_of(log: Log) -> str:
    """The last megabyte of the log as text; bytes that are no UTF-8 are replaced."""
    return service_log.tail(log.path, _TEXT_LIMIT).decode("utf-8", "replace")


def follow_log(context: Context, log: Log, write: Callable[[bytes], None]) -> None:
    """Write the log and what is added to it until nothing runs under its name any more."""
    service_log.follow(log.path, write, _Ending(context, log).ended)


class _Ending:
    """Waits on one process of the service at a time, and looks for another when it has ended."""

    def __init__(self, context: Context, log: Log) -> None:
        self._context = context
        self._environment = environments.require(context).id
        self._log = log
        self._pinned: Pinned | None = None

    def ended(self) -> bool:
        """Whether the service has ended; waits a moment if it lives."""
        if self._pinned is None:
            self._pinned = self._pin_one()
            if self._pinned is None:
                return True
        if self._pinned.wait(_PAUSE):
            self._pinned.close()
            self._pinned = None
        return False

    def _pin_one(self) -> Pinned | None:
        with self._context.registry.read() as conn:
            service = running.named(conn, self._environment, self._log.name)
        # The supervisor is the last to go, so it is asked first.
        for record in sorted(service.alive, key=lambda r: r.role != "supervisor"):
            try:
                return pin(identity.decode_identity(record.identity))
            except identity.ProcessGoneError:
                # It ended since the look; another of the service may live.
                continue
        return None
