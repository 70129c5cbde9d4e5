"""Which files an environment has been given, written down before they are there."""

from __future__ import annotations

import os

from corral.model.environment import Output
from corral.services.unplacing import DIRECTORY, FILE
from corral.store import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.model.environment import Environment
    from corral.services.context import Context
    from corral.services.outputs import Wanted


def known_outputs(context: Context, environment: Environment) -> dict[str, Output]:
    """What is recorded for the environment, by path."""
    with context.registry.read() as conn:
        return {output.path: output for output in environments.outputs(conn, environment.id)}


def record(
    context: Context,
    environment: Environment,
    wanted: Sequence[Wanted],
    known: dict[str, Output],
) -> None:
    """Write down what is about to be there. What was made once keeps the row of its making."""
    rows = [
        Output(environment.id, w.path, w.mode, w.digest)
        for w in wanted
        if w.mode == FILE or w.path not in known or known[w.path].mode != w.mode
    ]
    _remember(context, rows, known)


def record_directories(
    context: Context,
    environment: Environment,
    wanted: Sequence[Wanted],
    known: dict[str, Output],
) -> None:
    """Write down which directories are about to be made, for `down` to take the empty ones."""
    root = environment.place.path.rstrip("/")
    missing = set()
    for each in wanted:
        above = os.path.dirname(each.path)
        while above.startswith(f"{root}/") and not os.path.lexists(above):
            missing.add(above)
            above = os.path.dirname(above)
    rows = [Output(environment.id, path, DIRECTORY, "") for path in sorted(missing)]
    _remember(context, rows, known)


def _remember(context: Context, rows: Sequence[Output], known: dict[str, Output]) -> None:
    fresh = [row for row in rows if known.get(row.path) != row]
    if not fresh:
        return
    with context.registry.write() as conn:
        for row in fresh:
            environments.record_output(conn, row)
    known.update({row.path: row for row in fresh})
