"""Anonymous volumes: they go with the container that they were made for."""

from __future__ import annotations

from corral.backends.engine import looking
from corral.backends.engine.changing import Said, change
from corral.backends.engine.states import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.backends.engine.client import Engine
    from corral.backends.engine.views import Container
    from corral.model.report import Outcome

_OK = 200


def made_for(engine: Engine, containers: Iterable[Container], deadline: float) -> dict[str, str]:
    """The anonymous volumes that were made for these containers, each with its container's id.

    One that a container's own options name, or that it took over from another container, was made
    for somebody else.
    """
    import json

    holders = [c for c in containers if any(mount.anonymous for mount in c.mounts)]
    if not holders:
        return {}
    answers = engine.calls([("GET", f"/containers/{c.id}/json", None) for c in holders], deadline)
    found: dict[str, str] = {}
    for container, answer in zip(holders, answers, strict=True):
        if answer.status != _OK:  # it went in the meantime, and its volumes with it
            continue
        try:
            options = json.loads(answer.body)["HostConfig"]
        except (ValueError, KeyError, TypeError) as error:
            what = f"what the container {container.name} is made of cannot be read"
            raise EngineError(what, backend=engine.endpoint.name) from error
        if options.get("VolumesFrom"):
            continue
        named = json.dumps([options.get("Binds"), options.get("Mounts")])
        for mount in container.mounts:
            if mount.anonymous and mount.name not in named:
                found[mount.name] = container.id
    return found


def clear(
    engine: Engine, made: dict[str, str], outcomes: list[Outcome], deadline: float
) -> list[Outcome]:
    """Remove those whose container is gone and that nobody uses; what stays is reported.

    The engine itself leaves one behind where another container used it when its own went.
    """
    removed = {o.sighting.id for o in outcomes if o.result == "removed"}
    going = {name for name, container in made.items() if container in removed}
    if not going:
        return outcomes
    seen = looking.listing(engine, deadline)
    used = {mount.name for c in seen.containers for mount in c.mounts}
    problems: dict[str, str] = {}
    for name in {v.name for v in seen.volumes} & going - used:
        said, words = change(engine, "DELETE", f"/volumes/{name}")
        if said in {Said.BUSY, Said.FAILED}:
            problems[made[name]] = f"its anonymous volume {name[:12]} is still there: {words}"
    return [
        o._replace(result="remaining", reason=problems[o.sighting.id])
        if o.sighting.id in problems
        else o
        for o in outcomes
    ]
