"""`corral lock NAME [-- CMD...]`: run a command, or just wait, while nobody else has the lock."""

from __future__ import annotations

import os
import stat

from corral.cli.output import Answer, say, show
from corral.cli.surroundings import context_of
from corral.decide.locks import scope_words
from corral.errors import UsageError
from corral.model.lock import LockScope
from corral.services.locks import lock_named, take_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.model.lock import LockName
    from corral.model.report import Report
    from corral.services.context import Context

_EPILOG = """\
The command finds a number in CORRAL_FENCE that is larger than that of every holder before.
Without a command the lock is held until stdin ends, which has to be a terminal or a pipe.
The exit status is that of CMD; 4: somebody else holds the lock."""
_CHUNK = 65536


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.usage = "corral lock NAME [--wait S] [--scope repo|machine] [-- CMD...]"
    parser.epilog = _EPILOG
    parser.add_argument("name", metavar="NAME", help="a release, or whatever needs one driver")
    parser.add_argument("--wait", metavar="S", help="wait up to S for it; else it is now or never")
    parser.add_argument(
        "--scope",
        choices=[scope.value for scope in LockScope],
        help="all worktrees of this clone (the default in a repository), or this machine",
    )
    parser.add_argument(
        "argv", metavar="CMD", nargs="*", default=[], help="the command and its words"
    )


def run(arguments: Namespace) -> Answer:
    """Take the lock, run or wait, and answer."""
    scope = LockScope(arguments.scope) if arguments.scope else None
    timeout = _seconds(arguments.wait)
    context = context_of(arguments)
    lock = lock_named(arguments.name, scope, context.directory)
    if arguments.argv:
        return _run(context, lock, tuple(arguments.argv), timeout)
    _check_input()
    return _hold(context, lock, timeout, as_json=arguments.json)


def _seconds(text: str | None) -> float:
    if text is None:
        return 0.0
    from corral.decide.durations import parse_duration

    return parse_duration(text, "--wait")


def _run(context: Context, lock: LockName, argv: tuple[str, ...], timeout: float) -> Answer:
    from corral.services.locked import run_locked
    from corral.wiring import engines

    done = run_locked(
        context,
        lock,
        argv,
        lambda ids: _take_down(context, ids),
        lambda: engines(context),
        timeout=timeout,
    )
    status = done.result.exit_status or 0
    data = _data(lock, done.path, done.fence) | {
        "record": done.result.record,
        "pid": done.result.pid,
        "exit_status": status,
    }
    return Answer(
        data,
        words=tuple(f"corral: {word}" for word in done.result.words),
        status=status,
        result="ok" if status == 0 else "failed",
    )


def _take_down(context: Context, ids: tuple[str, ...]) -> Report:
    from corral.services.stopping import remove_started
    from corral.wiring import backends

    return remove_started(context, backends(context), ids, "lock")


def _data(lock: LockName, path: str, fence: int) -> dict[str, Any]:
    return {
        "name": lock.name,
        "scope": lock.scope.value,
        "place": lock.place or None,
        "path": path,
        "fence": fence,
    }


def _check_input() -> None:
    """Refuse to hold a lock for nobody: for a script whose stdin is at its end already."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        # stdin is closed.
        mode = 0
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0)):
        raise UsageError(
            "nothing says how long to hold the lock: stdin is neither a terminal nor a pipe",
            remedy="give the command that needs it: corral lock NAME -- CMD...",
        )


def _hold(context: Context, lock: LockName, timeout: float, *, as_json: bool) -> Answer:
    with take_lock(context, lock, timeout=timeout, command=f"corral lock {lock.name}") as held:
        data = _data(lock, held.path, held.fence) | {
            "record": None,
            "pid": context.pid,
            "exit_status": None,
        }
        answer = Answer(data, lambda: f"{held.fence}\n")
        show("lock", answer, as_json=as_json)
        if not as_json:
            say(f"corral: {lock.name} is locked {scope_words(lock)} until stdin ends (Ctrl-D)")
        while os.read(0, _CHUNK):
            continue
    return answer._replace(shown=True)
