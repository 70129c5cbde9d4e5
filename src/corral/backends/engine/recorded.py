"""What became of the records that lead to an engine, after a look into it."""

from __future__ import annotations

import json

from corral.backends.creating import being_created
from corral.backends.engine.labels import project_of
from corral.backends.engine.ownership import identities
from corral.backends.engine.registry_view import COMPOSE_ROLE, KINDS
from corral.kernel.creators import at_work
from corral.model.record import RecordState
from corral.model.resource import Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corral.backends.engine.ownership import Holdings
    from corral.contracts import View
    from corral.model.record import Record


def place_of(record: Record) -> str:
    """The place of the engine that a record leads to, "" for other records."""
    if record.kind not in KINDS or '"place"' not in record.detail:
        return ""
    try:
        place = json.loads(record.detail)["place"]
    except (ValueError, KeyError, TypeError):  # the registry shows it as a bad record
        return ""
    return place if isinstance(place, str) else ""


def account_for(
    view: View, place: str, held: Holdings, found: Iterable[Sighting]
) -> tuple[list[str], list[Sighting]]:
    """Go through the records that lead to this engine, after `found` was found in it.

    Returns the ids of those that name nothing any more, and what they alone show.
    """
    gone: list[str] = []
    shown: list[Sighting] = []
    there = frozenset(identities(held))
    owners = _owners(found, view.world.sessions)
    projects = frozenset(_projects(held))
    for record in view.records:
        if record.kind not in KINDS:
            continue
        if record.state is not RecordState.INTENT:
            if record.identity in there:
                continue
            if dict(record.identity).get("daemon") == held.daemon:
                gone.append(record.id)
            elif place_of(record) == place:
                shown.append(_elsewhere(record, held.backend))
        elif place_of(record) == place and not _needed(record, owners, projects):
            if at_work(record):
                shown.append(being_created(record, held.backend))
            else:
                gone.append(record.id)
    return gone, shown


def _projects(held: Holdings) -> Iterator[str]:
    for container in held.containers:
        yield project_of(container.labels)
    for network in held.networks:
        yield project_of(network.labels)
    for volume in held.volumes:
        yield project_of(volume.labels)


def _owners(found: Iterable[Sighting], sessions: Mapping[str, str]) -> frozenset[str]:
    """The owners that the marks name, themselves or by a session."""
    marks = [mark for sighting in found for mark in sighting.marks]
    named = {mark.owner for mark in marks if mark.owner}
    return frozenset(named | {sessions.get(mark.session, "") for mark in marks if mark.session})


def _needed(record: Record, owners: frozenset[str], projects: frozenset[str]) -> bool:
    """Whether something is there that this intent may have brought, so that it tells whose."""
    if record.role == COMPOSE_ROLE:
        return record.name in projects
    return record.owner in owners


def _elsewhere(record: Record, backend: str) -> Sighting:
    pairs = dict(record.identity)
    return Sighting(
        kind=record.kind,
        id=str(pairs.get("id") or pairs.get("name") or record.id),
        name=record.name,
        backend=backend,
        state="unknown",
        created_at=record.created_at,
        identity=record.identity,
        doubts=("recorded in another engine than the one that answers here now",),
        record=record.id,
    )
