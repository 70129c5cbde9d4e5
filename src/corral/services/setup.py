"""The commands of `[setup]`, run once for an environment and again when they change.

They were trusted before. They run below the worktree's top with the environment's variables and
the acting owner's mark; what they print goes to stderr.
"""

from __future__ import annotations

import os
from hashlib import sha256

from corral.errors import InvalidValueError, RunError
from corral.kernel import paths, signals, spawn
from corral.services.databases import own_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.model.environment import Environment
    from corral.services.context import Context

_DONE = "setup-done"
_STDERR = 2
_IN_DIRECTORY = 'cd -- "$1" && exec /bin/sh -c "$2"'


def pending(context: Context, environment: Environment, commands: Sequence[str]) -> bool:
    """Whether these commands have not all been run with success for this environment."""
    if not commands:
        return False
    path = os.path.join(own_directory(context, environment), _DONE)
    try:
        return paths.read_regular(path) != _digest(commands)
    except FileNotFoundError:
        return True
    except InvalidValueError:
        # Not a file of ours: what it says cannot be believed.
        return True


def run(
    context: Context,
    environment: Environment,
    commands: Sequence[str],
    variables: Mapping[str, str],
) -> None:
    """Run the commands in order; RunError at the first that fails, and the rest is not run."""
    for command in commands:
        status = _run(command, environment.place.path, {**context.environ, **variables})
        if status != 0:
            raise RunError(
                f"after_up: {command!r} ended with exit status {status}",
                remedy="correct it, then run corral up again: it starts over with the first one",
                resource=environment.id,
            )
    path = os.path.join(own_directory(context, environment), _DONE)
    paths.atomic_write(path, _digest(commands))


def _digest(commands: Sequence[str]) -> bytes:
    text = "\0".join(commands).encode("utf-8", "surrogateescape")
    return f"{sha256(text).hexdigest()}\n".encode()


def _run(command: str, directory: str, environ: Mapping[str, str]) -> int:
    argv = ("/bin/sh", "-c", _IN_DIRECTORY, "corral", directory, command)
    child = spawn.fork_waiting(
        spawn.Command(argv, environ, output=_STDERR), signals.Inherited(frozenset(), frozenset())
    )
    child.release()
    _, status = os.waitpid(child.pid, 0)
    return os.waitstatus_to_exitcode(status)
