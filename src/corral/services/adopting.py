"""Make a running resource this owner's, or keep one from ever being taken down."""

from __future__ import annotations

import json
import os
import time

from corral.decide.calling import called
from corral.decide.spelling import did_you_mean
from corral.errors import EnumerationError, ForeignError, NotFoundError, RefusedError, UsageError
from corral.kernel import identity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind, Proof
from corral.services import lifecycle
from corral.services.environments import register
from corral.services.looking import observe_all
from corral.services.owners import ensure_acting
from corral.services.pruning import forget_ended_keeps
from corral.services.view import look
from corral.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.contracts import Backend, View
    from corral.model.resource import Sighting
    from corral.services.context import Context

ADOPTABLE = (Kind.PROCESS, Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME, Kind.CLUSTER)


def adopt(
    context: Context, backends: Sequence[Backend], kind: str, identifier: str, *, name: str = ""
) -> Record:
    """Record a running resource as the acting owner's; returns the record.

    Raises UsageError for a kind that cannot be adopted, NotFoundError, ForeignError for what
    belongs to another owner and RefusedError for what must not be touched.
    """
    wanted = next((k for k in ADOPTABLE if k.value == kind), None)
    able = [b for b in backends if wanted in b.kinds]
    if wanted is None or not able:
        kinds = sorted({k.value for b in backends for k in b.kinds if k in ADOPTABLE})
        meant = did_you_mean(kind, kinds)
        raise UsageError(
            f"a {kind} cannot be adopted{meant}", remedy=f"kinds are: {', '.join(kinds)}"
        )
    _looked_up(able, look(context), wanted, identifier)  # a wrong id must not leave anything
    environment = register(context)
    acting = ensure_acting(context, environment)
    with lifecycle.hold(context.state_dir, what="adopt"):
        view = look(context)
        backend, sighting = _looked_up(able, view, wanted, identifier)
        _refuse(sighting, acting.owner, view)
        record = Record(
            id=f"rec-{os.urandom(8).hex()}",
            kind=wanted,
            backend=backend.name,
            role="adopted",
            name=name,
            owner=acting.owner,
            session=acting.session,
            environment=environment.id,
            state=RecordState.LIVE,
            identity=sighting.identity,
            creator=identity.own_identity(),
            created_at=time.time(),
            detail=json.dumps({"id": sighting.id, "place": getattr(backend, "place", "")}),
        )
        with context.registry.write() as conn:
            records.insert(conn, record)
    return record


def _looked_up(
    able: Sequence[Backend], view: View, kind: Kind, identifier: str
) -> tuple[Backend, Sighting]:
    """The first backend that has the thing, and the thing as it stands there.

    Raises NotFoundError; or EnumerationError where a backend that might have it could not look.
    """
    failed: EnumerationError | None = None
    for backend in able:
        try:
            sighting = backend.look_up(view, kind, identifier)
        except EnumerationError as error:
            failed = error
            continue
        if sighting is not None:
            return backend, sighting
    if failed is not None:
        raise failed
    by = "pid, as ps shows it" if kind is Kind.PROCESS else "full id or exact name"
    raise NotFoundError(
        f"there is no {kind.value} {identifier!r}", remedy=f"name a {kind.value} by its {by}"
    )


def _refuse(sighting: Sighting, owner: str, view: View) -> None:
    """Raise where adopting would make somebody else's thing, or a protected one, removable."""
    thing = f"{sighting.kind.value} {sighting.id}"
    if sighting.protections or sighting.shared:
        reason = sighting.protections[0] if sighting.protections else "part of the shared runtime"
        raise _not_adopted(sighting, reason)
    if sighting.doubts:
        raise _not_adopted(sighting, sighting.doubts[0])
    for mark in sighting.marks:
        other = mark.owner or view.world.sessions.get(mark.session or "")
        if mark.proof is Proof.RECORDED and other == owner:
            raise RefusedError(
                f"{thing} is recorded as this owner's already",
                remedy="nothing is to be done: corral reap takes it down",
                resource=sighting.id,
            )
        if other is not None and other != owner:
            places = {i: e.environment.place.path for i, e in view.world.environments.items()}
            state = view.world.owners.get(other)
            who = called(state.owner, places) if state is not None else f"owner {other}"
            raise ForeignError(
                f"{thing} belongs to {who}",
                remedy="let that one give it up: corral status --all shows what it has",
                resource=sighting.id,
            )


def _not_adopted(sighting: Sighting, reason: str) -> RefusedError:
    return RefusedError(
        f"{sighting.kind.value} {sighting.id} is not adopted: {reason}",
        remedy="leave it to whoever started it: corral would never take it down",
        resource=sighting.id,
    )


def find_resource(context: Context, backends: Sequence[Backend], wanted: str) -> Sighting:
    """The one resource that `wanted` names: KIND/ID, an id or a name.

    Raises NotFoundError, or UsageError when several match.
    """
    looked = observe_all(backends, look(context, wide=True))
    seen = [s for o in looked.observations for s in o.sightings if not s.creating]
    ways = (
        lambda s: f"{s.kind.value}/{s.id}" == wanted,
        lambda s: s.id == wanted,
        lambda s: s.name == wanted and s.state != "supervisor",
    )
    for way in ways:
        found = [s for s in seen if way(s)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UsageError(
                f"{wanted!r} names {len(found)} resources",
                remedy="name one as KIND/ID: " + ", ".join(f"{s.kind.value}/{s.id}" for s in found),
            )
    meant = did_you_mean(wanted, {s.name for s in seen if s.marks})
    raise NotFoundError(
        f"there is no resource {wanted!r}{meant}", remedy="see: corral status --all"
    )


def keep(context: Context, sighting: Sighting, *, kept: bool) -> None:
    """Remember (or forget) that a resource is never to be taken down."""
    with context.registry.write() as conn:
        forget_ended_keeps(conn)
        change = records.keep if kept else records.unkeep
        change(conn, sighting.kind.value, sighting.keep_id)
