"""What every use case needs: where it acts, by whom it was called, and the registry."""

from __future__ import annotations

import os

from corral.errors import UsageError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.config import Settings
    from corral.store.registry import Registry


class Context(NamedTuple):
    """One call's surroundings, read once at the edge.

    `directory`: the real path that `--env` or the working directory names. `session`: the value of
    `--session`, or None. `environ`: the caller's variables. `pid`: the calling process.
    """

    directory: str
    session: str | None
    environ: Mapping[str, str]
    state_dir: str
    registry: Registry
    settings: Settings
    pid: int


def context_in(
    directory: str | None,
    environ: Mapping[str, str],
    *,
    session: str | None = None,
    anywhere: bool = False,
) -> Context:
    """The context of this process in a directory (None: the working directory).

    `anywhere`: the call needs no directory, so a working directory that was removed is no fault.

    Raises UsageError when the directory is not there, ConfigurationError for wrong settings and
    StateDirectoryError when the state directory cannot be used.
    """
    from corral.config import load_settings
    from corral.store import statedir
    from corral.store.registry import Registry

    wanted = directory or _here(anywhere=anywhere)
    real = os.path.realpath(wanted)
    if not os.path.isdir(real):
        raise UsageError(f"{wanted}: not a directory", remedy="name a worktree or directory")
    state_dir = statedir.locate(environ, os.path.expanduser("~"))
    return Context(
        directory=real,
        session=session,
        environ=environ,
        state_dir=state_dir,
        registry=Registry.open(state_dir),
        settings=load_settings(real, environ),
        pid=os.getpid(),
    )


def _here(*, anywhere: bool) -> str:
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        if anywhere:
            return "/"
        raise UsageError(
            "the current directory was removed", remedy="change to another, or give --env DIR"
        ) from error


class Acting(NamedTuple):
    """The owner that a command acts for, and the session id it was found by (None: implicit)."""

    owner: str
    session: str | None
    implicit: bool
