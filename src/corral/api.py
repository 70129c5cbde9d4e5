"""The Python API above the services: environments, and cleanup in two steps.

    plan = prepare_cleanup()      # looks, changes nothing
    report = cleanup(plan)        # acts on what the plan showed and a fresh look still finds

Every function works on the user's own registry (CORRAL_STATE_DIR, else the XDG state directory).
"""

from __future__ import annotations

import os
import time

from corral.errors import InvalidValueError
from corral.services.context import context_in
from corral.services.ending import cleanup_job, reap
from corral.services.lifecycle import hold
from corral.services.teardown import carry_out, prepare
from corral.wiring import backends, clusters, engines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from corral.model.report import Plan, Report
    from corral.services.context import Context
    from corral.services.starting import Result
    from corral.services.status import Status


def prepare_cleanup(
    *,
    backend_names: Sequence[str] = (),
    data: bool = False,
    older_than: float | None = None,
) -> Plan:
    """What `cleanup` would remove now: orphans of every backend, with identities and reasons.

    Has no side effects. `backend_names` narrows the look (as `docker`, `process`), `data` includes
    what holds data, `older_than` is in seconds. `plan.targets` are what would go, each with its
    reason. A backend whose look failed is in `plan.backends` as failed, and nothing of it is a
    target. Raises UsageError for a backend that there is not, InvalidValueError for a negative age,
    StateDirectoryError and RegistryError where the registry cannot be read.
    """
    if older_than is not None and not older_than >= 0:
        raise InvalidValueError(f"older_than: {older_than!r} is no age", remedy="give seconds")
    context = _context()
    job = cleanup_job(now=time.time(), older_than=older_than, data=data)
    return prepare(context, backends(context, backend_names), job)


def cleanup(plan: Plan) -> Report:
    """Remove what `plan` showed and a fresh look, under the lifecycle lock, still finds.

    What appeared since, or was replaced under the same name, is left. `report.removed` holds what a
    look afterwards no longer found; what is still there is in `report.remaining`, and that is no
    exception. Raises HeldError when another teardown holds the lock for too long.
    """
    context = _context()
    names = [report.name for report in plan.backends]
    job = cleanup_job(now=time.time(), data=True)
    return carry_out(context, backends(context, names), job, shown=plan)


class LifecycleLock:
    """The lifecycle lock: while it is held, nothing is judged or removed by anybody else."""

    @staticmethod
    def hold(*, what: str = "python", timeout: float | None = 30.0) -> AbstractContextManager[None]:
        """Hold the lock in a `with` block.

        `timeout` in seconds, None waits for ever; `what` tells others what it is held for. Raises
        HeldError naming the holder, StateDirectoryError when it cannot be had at all.
        """
        return hold(_context().state_dir, what=what, timeout=timeout)

    def __repr__(self) -> str:
        return "lifecycle_lock"


lifecycle_lock = LifecycleLock()


def _context(directory: str | None = None, session: str | None = None) -> Context:
    return context_in(directory, os.environ, session=session)


class Environment:
    """The environment of a worktree or directory, as the command line sees it there.

    Whose it acts for follows from `session`, else CORRAL_SESSION, the agent's or CI system's id, or
    the worktree. Any method raises RegistryError where the registry cannot be read or written.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    @classmethod
    def open(cls, path: str | os.PathLike[str] = ".", *, session: str | None = None) -> Environment:
        """The environment of `path`; nothing is made before something is claimed or run.

        Settings are read here and not again. Raises UsageError when `path` is no directory,
        ConfigurationError for wrong settings, StateDirectoryError when the state directory cannot
        be used.
        """
        return cls(_context(os.fspath(path), session))

    def __repr__(self) -> str:
        return f"Environment({self._context.directory!r})"

    def claim_ports(self, *names: str, **preferred: int) -> Mapping[str, int]:
        """Claim a port for each name (all or nothing) and return all of the environment's ports.

        The result is `{name: number}`. A keyword gives the preferred number, 1 to 65535. This is
        `corral up --port`: what the configuration wants is claimed, made and written too. Raises
        HeldError when the pool is exhausted, UntrustedError for commands that the user has not
        trusted, InvalidValueError for a number that cannot be, UsageError for a name.
        """
        from corral.config import PortWish
        from corral.decide.ports import check_port
        from corral.services.up import Request, up
        from corral.wiring import run_program

        wishes = (
            *(PortWish(name) for name in names),
            *(PortWish(name, check_port(number, name)) for name, number in preferred.items()),
        )
        done = up(self._context, Request(ports=wishes), run_program)
        ports: dict[str, int] = done.environment["ports"]
        return ports

    def variables(self) -> Mapping[str, str]:
        """The variables that the environment hands to programs, as text: `{"WEB_PORT": "22201"}`.

        Without the caller's own. Raises NotFoundError before anything was claimed or run here.
        """
        from corral.services.environments import require
        from corral.services.variables import variables_of

        environment = require(self._context)
        with self._context.registry.read() as conn:
            return dict(variables_of(conn, environment, self._context.settings))

    def run(self, *argv: str, name: str = "", ready_seconds: float | None = None) -> Result:
        """Start a command as this worker's own, detached; see `corral run --detach`.

        `argv` are the words of the command, without a shell; `{port}` and `{host}` are filled in.
        `name` is that of a port, to get it, or any other. `ready_seconds`: wait that long until it
        listens on its own port. A name that runs already is returned with `already`. Raises
        RunError when it cannot be started, or ends or is not ready in time (what was started is
        taken down then), HeldError when a port is somebody else's.
        """
        from corral.services.launching import Request
        from corral.services.run import run
        from corral.services.stopping import remove_started

        context = self._context
        request = Request(argv, name=name, detach=True, ready_seconds=ready_seconds)
        return run(
            context,
            request,
            lambda ids: remove_started(context, backends(context), ids),
            lambda: engines(context),
            lambda: clusters(context),
        )

    def microvm_directory(self) -> str:
        """A new run directory for one Firecracker microVM of this worker's; its path.

        Put the configuration into it and start `firecracker --config-file PATH/...`, or give it to
        the jailer as `--chroot-base-dir`: whatever runs so is this worker's, and is taken down
        with the directory. Until something runs, it is kept for as long as this process lives.
        Raises HeldError when the lifecycle lock cannot be had in time.
        """
        from corral.services.environments import register
        from corral.services.microvm_starts import make_directory
        from corral.services.owners import ensure_acting

        environment = register(self._context)
        acting = ensure_acting(self._context, environment)
        return make_directory(self._context, environment, acting).path

    def status(self) -> Status:
        """What is owned, kept, shared, orphaned or unknown here.

        A backend that could not look is in `backends` as failed. The first sight of a worker's end
        is noted; nothing else is changed.
        """
        from corral.services.status import status

        return status(self._context, backends(self._context))

    def reap(self) -> Report | None:
        """Take down what the acting owner owns; None when nobody acted here yet.

        What holds data, and claims, stay. Raises ForeignError when the session lives elsewhere,
        HeldError when another teardown holds the lock for too long.
        """
        return reap(self._context, backends(self._context))

    def down(self, *, keep_data: bool = False) -> Report:
        """Give the environment up: what runs, claims, files and, without `keep_data`, databases.

        It stays, with its claims, while something of it is left. Raises NotFoundError when there is
        none, ForeignError while another owner lives in it, HeldError when another teardown holds
        the lock for too long.
        """
        from corral.services.giving_up import give_up

        return give_up(self._context, backends(self._context), keep_data=keep_data).report
