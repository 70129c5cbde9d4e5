"""What the registry's view says about an engine's things, in the terms of ownership."""

from __future__ import annotations

import os

from corral.backends.engine.labels import WORKING_DIR
from corral.backends.engine.projects import Claimed
from corral.backends.engine.proofs import Known
from corral.decide.project_places import read_directories, still_of
from corral.model.environment import ClaimKind
from corral.model.record import RecordState
from corral.model.resource import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.backends.engine.views import Container
    from corral.contracts import View
    from corral.model.environment import Claim

KINDS = frozenset({Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME})
COMPOSE_SCOPE = "compose"  # of claimed names
COMPOSE_ROLE = "compose"  # of intents that `corral run -- docker compose ...` leaves


def known(view: View) -> Known:
    """All that ownership asks for, but for the places of containers that nobody has seen yet."""
    states = view.world.environments.values()
    spaces = dict.fromkeys([view.namespace, *(s.environment.namespace for s in states)])
    own = {s.environment.id: s.environment.place.path for s in states}
    paths = {identifier: frozenset({path}) for identifier, path in own.items()}
    projects = {}
    for claim in view.claims:
        if claim.kind is ClaimKind.NAME and claim.scope == COMPOSE_SCOPE and claim.environment:
            more = still_of(claim.environment, read_directories(claim.detail), own)
            places = paths.get(claim.environment, frozenset()) | more
            paths[claim.environment] = places
            projects[claim.value] = Claimed(claim.environment, places, _intents(view, claim))
    return Known(
        tuple(spaces),
        projects,
        {(r.kind, r.identity): r for r in view.records if _is_live(r.kind, r.state)},
        view.kept,
        frozenset(_ports(view.claims)),
        paths,
        {},
    )


def with_places(before: Known, containers: Iterable[Container]) -> Known:
    """The same, with the real paths of the containers' working directories."""
    directories = {c.labels[WORKING_DIR] for c in containers if WORKING_DIR in c.labels}
    return before._replace(places={each: os.path.realpath(each) for each in directories})


def _is_live(kind: Kind, state: RecordState) -> bool:
    return kind in KINDS and state is RecordState.LIVE


def _intents(view: View, claim: Claim) -> frozenset[str]:
    """The owners that started, or meant to start, this environment's stack through corral."""
    return frozenset(
        record.owner
        for record in view.records
        if record.role == COMPOSE_ROLE
        and record.kind is Kind.CONTAINER
        and record.name == claim.value
        and record.environment == claim.environment
    )


def _ports(claims: Iterable[Claim]) -> Iterable[int]:
    for claim in claims:
        if claim.kind is ClaimKind.PORT and claim.environment and claim.value.isdigit():
            yield int(claim.value)
