"""Run a command while this process holds a lock, and end its whole tree before the lock goes."""

from __future__ import annotations

import signal

from corral.model.tuples import NamedTuple
from corral.services import environments, launching, running
from corral.services.locks import take_lock
from corral.services.run import run
from corral.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.contracts import Engines
    from corral.model.lock import LockName
    from corral.services.context import Context
    from corral.services.starting import Result, TakeDown

FENCE_VARIABLE = "CORRAL_FENCE"


class Locked(NamedTuple):
    """What became of a command that ran under a lock."""

    lock: LockName
    path: str
    fence: int
    result: Result


def run_locked(
    context: Context,
    lock: LockName,
    argv: tuple[str, ...],
    take_down: TakeDown,
    engines: Callable[[], Engines] | None = None,
    *,
    timeout: float | None = 0.0,
) -> Locked:
    """Take the lock within `timeout` seconds, run the command to its end, give the lock up.

    The command is owned as under `corral run`, finds the fence number in CORRAL_FENCE and never
    has the lock itself: if this process is killed, the lock is free and the command gets TERM
    (Linux). What it leaves running is taken down first. Raises what `take_lock` and `run` raise.
    """
    request = launching.Request(argv, death_signal=signal.SIGTERM)
    launching.check(request)
    with take_lock(context, lock, timeout=timeout, command=" ".join(argv)) as held:
        fenced = {**context.environ, FENCE_VARIABLE: str(held.fence)}
        result = run(context._replace(environ=fenced), request, take_down, engines)
        words = _end_tree(context, result, take_down)
        result = result._replace(words=(*result.words, *words))
        return Locked(lock, held.path, held.fence, result)


def _end_tree(context: Context, result: Result, take_down: TakeDown) -> tuple[str, ...]:
    """Take down what the command left running; words on what is still there."""
    environment = environments.require(context)
    with context.registry.read() as conn:
        found = records.of_environment(conn, environment.id)
    left = tuple(r.id for r in found if running.details(r).get("of") == result.record)
    if not left:
        return ()
    report = take_down(left)
    return tuple(
        f"process {j.sighting.id} of the command is still there: {j.reason}"
        for j in (*report.remaining, *report.left)
    )
