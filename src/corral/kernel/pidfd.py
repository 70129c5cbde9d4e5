"""Hold on to one process, so that a signal reaches it or nobody, and wait for its end."""

from __future__ import annotations

import os
import time

from corral.errors import EnumerationError
from corral.kernel import _pidfd, clock
from corral.kernel.identity import hold, presence
from corral.model.process import Presence, ProcessIdentity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


class Pinned:
    """One live process; a context manager that lets go of it at the end.

    Where the system has no pidfd, its identity is read again right before each signal instead: a
    small race remains then.
    """

    __slots__ = ("_fd", "identity")

    def __init__(self, identity: ProcessIdentity, fd: int | None) -> None:
        self.identity = identity
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go; the process itself goes on."""
        if self._fd is not None and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def fileno(self) -> int:
        """The pidfd, readable once the process has ended. EnumerationError where there is none."""
        if self._fd is None:
            raise EnumerationError("this system has no pidfds", backend="process")
        if self._fd < 0:
            raise ValueError(f"the process {self.identity.pid} is not pinned any more")
        return self._fd

    def alive(self) -> bool:
        """Whether it still lives; a zombie does not. Raises EnumerationError."""
        if self._fd is not None:
            return not _pidfd.ended(self.fileno())
        state, reason = presence(self.identity, boot_id=clock.boot_id())
        if state is Presence.UNKNOWN:
            raise self._failed(reason)
        return state is Presence.ALIVE

    def signal(self, number: int) -> bool:
        """Send it a signal; False if it has ended already, so that nobody was signalled.

        Raises EnumerationError where the signal is refused.
        """
        if not self.alive():
            return False
        try:
            self._send(number)
        except ProcessLookupError:
            return False  # it ended after we looked
        except OSError as error:  # EPERM: another user's, or a filter
            reason = f"process {self.identity.pid} cannot be signalled: {error.strerror}"
            raise self._failed(reason) from error
        return True

    def wait(self, seconds: float) -> bool:
        """Wait at most that long for its end; whether it has ended. Raises EnumerationError."""
        return bool(wait_any([self], seconds))

    def _send(self, number: int) -> None:
        if self._fd is None:
            os.kill(self.identity.pid, number)
            return
        import signal

        signal.pidfd_send_signal(self._fd, number)

    def _failed(self, reason: str) -> EnumerationError:
        return EnumerationError(reason, backend="process", resource=str(self.identity.pid))


def pin(identity: ProcessIdentity) -> Pinned:
    """Hold on to exactly the process that was identified.

    Raises ProcessGoneError when it is proven gone (also when its pid is another process's now),
    EnumerationError when that cannot be told: then nothing may be signalled.
    """
    return Pinned(identity, hold(identity, clock.boot_id()))


def wait_any(pinned: Sequence[Pinned], seconds: float) -> tuple[Pinned, ...]:
    """Those that have ended, as soon as one has or when the time is over (then none).

    Raises EnumerationError where it cannot be told.
    """
    if not pinned:
        return ()
    if all(one._fd is not None for one in pinned):  # noqa: SLF001 (the class's own module)
        return _poll(pinned, seconds)
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not (ended := tuple(one for one in pinned if not one.alive())):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE)
    return ended


def wait_all(pinned: Sequence[Pinned], seconds: float) -> tuple[Pinned, ...]:
    """Those that still live when all have ended (then none) or the time is over.

    Raises EnumerationError where it cannot be told.
    """
    deadline, remaining = time.monotonic() + seconds, tuple(pinned)
    while remaining:
        ended = wait_any(remaining, max(0.0, deadline - time.monotonic()))
        if not ended:
            break
        remaining = tuple(one for one in remaining if one not in ended)
    return remaining


def _poll(pinned: Sequence[Pinned], seconds: float) -> tuple[Pinned, ...]:
    import select

    poll = select.poll()
    for one in pinned:
        poll.register(one.fileno(), select.POLLIN)
    ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
    return tuple(one for one in pinned if one.fileno() in ready)
