"""Approval covers what was shown: approved and fresh, compared by identity."""

from __future__ import annotations

from corral.model.resource import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.resource import Judgement, Sighting


def approved(fresh: Iterable[Judgement], shown: Iterable[Sighting]) -> tuple[Judgement, ...]:
    """Of the fresh judgements those that were shown, by kind, id and pinned identity.

    What a shown process has spawned meanwhile is part of its tree and goes with it; anything else
    that appeared after the preview is left.
    """
    keys = set()
    pids = set()
    for sighting in shown:
        keys.add(sighting.key)
        if sighting.kind is Kind.PROCESS:
            pids.add(process_key(sighting))
    return tuple(
        judgement
        for judgement in fresh
        if judgement.sighting.key in keys or not pids.isdisjoint(judgement.sighting.ancestors)
    )


def process_key(sighting: Sighting) -> tuple[int, int]:
    """A process's (pid, start ticks), the form in which `ancestors` names it."""
    pairs = dict(sighting.identity)
    return (int(pairs["pid"]), int(pairs["start_ticks"]))
