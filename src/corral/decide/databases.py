"""Database servers among processes: how each is asked to end, and in which order with its parts.

A server's own parts (PostgreSQL's writers, a client's backend) end with it and are not signalled
before: a part that is killed makes the server end everything at once, without a checkpoint. What
uses the server ends before it.
"""

from __future__ import annotations

from corral.decide.approval import process_key
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.model.process import ProcessRow
    from corral.model.resource import Judgement

# The signal at which each writes down what it has and ends, however many clients it has.
# PostgreSQL waits for its clients at TERM.
_SIGNALS: dict[str, str] = {
    "postgres": "SIGINT",
    "postmaster": "SIGINT",
    "mysqld": "SIGTERM",
    "mariadbd": "SIGTERM",
    "mongod": "SIGTERM",
}


class Parted(NamedTuple):
    """What is to be ended, in this order; `servers` by the name of the signal that each gets."""

    others: tuple[Judgement, ...]
    servers: Mapping[str, tuple[Judgement, ...]]
    below: tuple[Judgement, ...]


def part(targets: Sequence[Judgement], rows: Mapping[int, ProcessRow]) -> Parted:
    """Part database servers and what stands below them from the other targets.

    `rows`: processes by pid. One below another database is a part of it.
    """
    asked = {
        process_key(t.sighting): signal
        for t in targets
        if (row := rows.get(int(t.sighting.id))) is not None
        and (signal := _SIGNALS.get(row.comm)) is not None
    }
    others: list[Judgement] = []
    servers: dict[str, tuple[Judgement, ...]] = {}
    below: list[Judgement] = []
    for target in targets:
        signal = asked.get(process_key(target.sighting))
        if not asked.keys().isdisjoint(target.sighting.ancestors):
            below.append(target)
        elif signal is None:
            others.append(target)
        else:
            servers[signal] = (*servers.get(signal, ()), target)
    return Parted(tuple(others), servers, tuple(below))
