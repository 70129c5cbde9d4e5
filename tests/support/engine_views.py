"""A worker's view of the registry, made by hand, for tests of the container backend alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from corral.contracts import RemovalContext, View
from corral.decide.judge import Request, Trigger, World, judge
from corral.model.environment import (
    Claim,
    ClaimKind,
    Environment,
    EnvironmentState,
    Existence,
    Place,
)
from corral.model.owner import Epoch, Life, Owner, OwnerState
from corral.model.resource import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.backends.containers import ContainerBackend
    from corral.model.record import Record
    from corral.model.report import Outcome
    from corral.model.resource import Judgement, Sighting

OWNER, SESSION, ENVIRONMENT = "own-1", "session-1", "env-1"


def view(
    *,
    project: str = "",
    path: str = "/nowhere",
    records: tuple[Record, ...] = (),
    kept: frozenset[tuple[str, str]] = frozenset(),
    ports: tuple[int, ...] = (),
) -> View:
    """One owner with one session in one environment, which may have claimed a project."""
    epoch = Epoch(1, OWNER, ENVIRONMENT, "", 0.0, "boot", None, None, "", None)
    owner = Owner(OWNER, None, None, 0.0, (SESSION,), (epoch,))
    place = Place(path, "path", "", "", path, "repo", "", True, 0, 0)
    state = EnvironmentState(
        Environment(ENVIRONMENT, place, "nonce", 0.0), Existence.PRESENT, "is there"
    )
    world = World(
        {OWNER: OwnerState(owner, Life.LIVE, "lives", anchored=False)},
        {SESSION: OWNER},
        {ENVIRONMENT: state},
    )
    claims = [
        Claim(ClaimKind.PORT, "tcp", str(port), "web", ENVIRONMENT, None, "", 0.0) for port in ports
    ]
    if project:
        claims.append(
            Claim(ClaimKind.NAME, "compose", project, "compose", ENVIRONMENT, None, "", 0.0)
        )
    return View(
        world, records, tuple(claims), kept, (), "/nowhere", "corral", frozenset(), time.time()
    )


REAP = Request(Trigger.REAP, owner=OWNER)
REAP_DATA = REAP._replace(data=True)
DOWN = Request(Trigger.DOWN, owner=OWNER, environment=ENVIRONMENT, data=True)


def seen(backend: ContainerBackend, around: View) -> dict[str, Sighting]:
    """What the backend sees that is not the engine itself, by name."""
    sightings = backend.observe(around).sightings
    return {s.name: s for s in sightings if s.kind is not Kind.ENGINE}


def judged(backend: ContainerBackend, around: View, request: Request = REAP) -> list[Judgement]:
    """Every judgement of what it sees."""
    return [judge(s, around.world, request) for s in backend.observe(around).sightings]


def targets(
    backend: ContainerBackend, around: View, kind: Kind, request: Request = REAP
) -> list[Judgement]:
    """What may be removed."""
    return [
        j
        for j in judged(backend, around, request)
        if j.verdict is Verdict.REAP and j.sighting.kind is kind
    ]


def remove(
    backend: ContainerBackend,
    found: list[Judgement],
    around: View,
    *,
    confirm: Callable[[Judgement], str] = lambda _: "",
    seconds: float = 60.0,
    gentle: float = 5.0,
) -> dict[str, Outcome]:
    """Remove the targets; the outcomes by name."""
    context = RemovalContext(around, confirm, time.monotonic() + seconds, gentle)
    return {o.sighting.name: o for o in backend.remove(found, context)}
