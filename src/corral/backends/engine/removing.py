"""Removing from one engine, by full ids: what is shown is what is removed, or nothing is.

What an engine says is not believed alone: what it took is looked for until it is gone.
"""

from __future__ import annotations

import time

from corral.backends.engine import anonymous, looking
from corral.backends.engine.changing import Said, already_gone, change, deadline, each, outcome
from corral.backends.engine.ownership import network_identity, volume_identity
from corral.backends.engine.wire import quoted
from corral.errors import EnumerationError
from corral.model.report import Outcome
from corral.model.resource import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.backends.engine.client import Engine
    from corral.backends.engine.ownership import Holdings
    from corral.backends.engine.views import Container
    from corral.contracts import RemovalContext
    from corral.model.resource import Judgement

_LOOK_SECONDS = 5.0
_PATIENCE = 5.0  # for what the engine is removing, and for what was in use just now
_PAUSE = 0.05
_RUNNING = frozenset({"running", "paused", "restarting", "stopping"})


def remove(
    engine: Engine, targets: Sequence[Judgement], context: RemovalContext
) -> tuple[Outcome, ...]:
    """One outcome for each target, all of one kind. Raises EngineError when it cannot look."""
    seen = looking.listing(engine, deadline(context, _LOOK_SECONDS))
    _same_engine(engine, targets, seen)
    outcomes: list[Outcome] = []
    present: list[Judgement] = []
    for target in targets:
        if _present_identity(seen, target) == target.sighting.identity:
            present.append(target)
        else:
            outcomes.append(already_gone(target))
    if present:
        containers = present[0].sighting.kind is Kind.CONTAINER
        kind = _remove_containers if containers else _remove_unused
        outcomes += kind(engine, present, seen, context)
    return tuple(outcomes)


def _same_engine(engine: Engine, targets: Sequence[Judgement], seen: Holdings) -> None:
    if any(dict(target.sighting.identity)["daemon"] != seen.daemon for target in targets):
        raise EnumerationError(
            f"another engine answers at {engine.endpoint.url} than before",
            backend=engine.endpoint.name,
        )


def _present_identity(seen: Holdings, target: Judgement) -> object:
    """The identity of what has the target's id, or for a volume its name, now."""
    wanted, kind = target.sighting.id, target.sighting.kind
    if kind is Kind.CONTAINER:
        return target.sighting.identity if any(c.id == wanted for c in seen.containers) else None
    if kind is Kind.NETWORK:
        found = (network_identity(n, seen.daemon) for n in seen.networks if n.id == wanted)
        return next(found, None)
    volumes = (v for v in seen.volumes if v.name == wanted)
    births = seen.births
    return next(
        (volume_identity(v, births.get(v.name, v.stamp), seen.daemon) for v in volumes), None
    )


def _remove_containers(
    engine: Engine, targets: Sequence[Judgement], seen: Holdings, context: RemovalContext
) -> list[Outcome]:
    by_id = {c.id: c for c in seen.containers}
    podman = engine.about(deadline(context, _LOOK_SECONDS)).podman

    def act(target: Judgement) -> Outcome:
        path = f"/containers/{target.sighting.id}"
        container = by_id[target.sighting.id]
        running = container.state in _RUNNING
        if running and (target.stop_only or holds_data(container)):
            seconds = int(context.gentle)
            said, words = change(engine, "POST", f"{path}/stop?t={seconds}", seconds=seconds)
            if said is Said.GONE:
                return already_gone(target)
            if target.stop_only and said is not Said.TAKEN:
                return Outcome(target.sighting, "remaining", f"it could not be stopped: {words}")
            doubt = context.confirm(target)  # those seconds are long enough for a change of mind
            if doubt:
                return Outcome(target.sighting, "left", doubt)
        if target.stop_only:
            return Outcome(target.sighting, "left", f"stopped, not removed: {target.reason}")
        if running and podman:
            # Its forced removal waits for the container's own stop time, 10 s if it has none.
            change(engine, "POST", f"{path}/kill?signal=KILL")
        return outcome(target, *change(engine, "DELETE", f"{path}?force=1&v=1"))

    removable = [by_id[t.sighting.id] for t in targets if not t.stop_only]
    made_for_them = anonymous.made_for(engine, removable, deadline(context, _LOOK_SECONDS))
    outcomes = _settled(engine, each(targets, context, act), context)
    return anonymous.clear(engine, made_for_them, outcomes, deadline(context, _LOOK_SECONDS))


def holds_data(container: Container) -> bool:
    """Whether it has a named volume or a directory of the machine, so that it may be writing."""
    return any(
        mount.kind == "bind" or (mount.kind == "volume" and not mount.anonymous)
        for mount in container.mounts
    )


def _settled(engine: Engine, outcomes: list[Outcome], context: RemovalContext) -> list[Outcome]:
    """Wait until what the engine took is gone; of what stays, say in which state it is."""
    taken = {o.sighting.id for o in outcomes if o.result == "removed"}
    until = deadline(context, _PATIENCE)
    states: dict[str, str] = {}
    while taken:
        present = looking.containers(engine, deadline(context, _LOOK_SECONDS))
        states = {c.id: c.state for c in present if c.id in taken}
        if not states or time.monotonic() >= until:
            break
        time.sleep(_PAUSE)
    return [
        o._replace(
            result="remaining",
            reason=f"the engine took its removal, and it is still there, {states[o.sighting.id]}",
        )
        if o.sighting.id in states
        else o
        for o in outcomes
    ]


def _remove_unused(
    engine: Engine, targets: Sequence[Judgement], seen: Holdings, context: RemovalContext
) -> list[Outcome]:
    """Networks and volumes: whoever uses them keeps them, and nobody is cut off."""
    del seen

    def act(target: Judgement) -> Outcome:
        if target.stop_only:
            reason = f"left with the stack, which was only stopped: {target.reason}"
            return Outcome(target.sighting, "left", reason)
        kind = "networks" if target.sighting.kind is Kind.NETWORK else "volumes"
        path = f"/{kind}/{quoted(target.sighting.id)}"
        until = deadline(context, _PATIENCE)
        while True:
            said, words = change(engine, "DELETE", path)
            if said is not Said.BUSY or time.monotonic() >= until:
                return outcome(target, said, words)
            time.sleep(_PAUSE)

    return each(targets, context, act)
