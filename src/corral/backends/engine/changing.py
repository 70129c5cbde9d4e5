"""Calls that take something away: confirmed right before, several at a time, each on its own."""

from __future__ import annotations

import time
from enum import Enum

from corral.backends.engine.states import EngineError
from corral.model.report import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.backends.engine.client import Engine
    from corral.contracts import RemovalContext
    from corral.model.resource import Judgement

_AT_ONCE = 32
_CALL_SECONDS = 20.0  # for one call; a slow disk takes its time
_LEAST = 1.0
_FIRST_ERROR, _GONE, _CONFLICT = 400, 404, 409


class Said(Enum):
    """What an answer means. TAKEN: done, or somebody is at it already. BUSY: in use."""

    TAKEN = "taken"
    GONE = "gone"
    BUSY = "busy"
    FAILED = "failed"


def change(engine: Engine, method: str, path: str, *, seconds: float = 0.0) -> tuple[Said, str]:
    """Make one call that the engine works on for `seconds`; what it means, and its words.

    An engine that does not answer now has failed this call only: the look after the removal will
    tell whether it failed altogether.
    """
    try:
        answer = engine.call(method, path, time.monotonic() + seconds + _CALL_SECONDS)
    except EngineError as error:
        return Said.FAILED, error.message
    if answer.status < _FIRST_ERROR:
        return Said.TAKEN, ""
    words = engine.words(answer)
    if answer.status == _GONE:
        return Said.GONE, words
    if "already in progress" in words:
        return Said.TAKEN, words
    busy = answer.status == _CONFLICT or any(w in words for w in ("in use", "active endpoints"))
    return (Said.BUSY if busy else Said.FAILED), words


def each(
    targets: Sequence[Judgement], context: RemovalContext, act: Callable[[Judgement], Outcome]
) -> list[Outcome]:
    """`act` on the targets, several at a time, each confirmed right before."""
    from concurrent.futures import ThreadPoolExecutor

    def confirmed(target: Judgement) -> Outcome:
        doubt = context.confirm(target)
        return Outcome(target.sighting, "left", doubt) if doubt else act(target)

    with ThreadPoolExecutor(max(1, min(_AT_ONCE, len(targets)))) as pool:
        return list(pool.map(confirmed, targets))


def outcome(target: Judgement, said: Said, words: str) -> Outcome:
    """The outcome of a removal that was answered like this."""
    if said is Said.TAKEN:
        return Outcome(target.sighting, "removed", "removed")
    if said is Said.GONE:
        return already_gone(target)
    return Outcome(target.sighting, "remaining", words)


def already_gone(target: Judgement) -> Outcome:
    """The outcome for what somebody else removed."""
    return Outcome(target.sighting, "already_gone", "it was gone already")


def deadline(context: RemovalContext, seconds: float) -> float:
    """At most `seconds` from now, and not beyond what the whole removal may take."""
    now = time.monotonic()
    return min(now + seconds, max(context.deadline, now + _LEAST))
