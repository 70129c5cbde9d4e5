"""Drop rows that name nothing any more: owners that are long over, and what `keep` remembers."""

from __future__ import annotations

from corral.decide.judge import Request, Trigger
from corral.decide.over import forgettable
from corral.errors import HeldError, InvalidValueError, RegistryError
from corral.kernel import clock, identity
from corral.model.process import Presence
from corral.model.resource import KEPT_BY, Kind
from corral.services.looking import judge_all, observe_all
from corral.services.view import look
from corral.store import owners, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from corral.contracts import Backend
    from corral.services.context import Context


def prune(context: Context, backends: Sequence[Backend]) -> None:
    """Forget the owners that nothing of is left; `backends` are all there are.

    A session id that is resumed stays the same owner as long as anything leads to it, and nobody
    is forgotten where a backend could not look.
    """
    view = look(context, wide=True)
    states = view.world.owners.values()
    busy = {record.owner for record in view.records} | {claim.worker for claim in view.claims}
    found = forgettable(states, busy, view.now)
    if found:
        looked = observe_all(backends, view)
        if looked.failed:
            return
        request = Request(Trigger.CLEANUP, now=view.now)
        judged = judge_all(looked.observations, view, request)
        marked = {j.owner for j in judged} | {
            mark.owner or view.world.sessions.get(mark.session or "")
            for j in judged
            for mark in j.sighting.marks
        }
        found = tuple(owner for owner in found if owner not in marked)
    if not (found or view.kept):
        return
    try:
        with context.registry.write() as conn:
            for owner in found:
                owners.forget(conn, owner, view.now)
            forget_ended_keeps(conn)
    except (HeldError, RegistryError):
        # A busy gate or a full disk: it can wait for the next one.
        return


def forget_ended_keeps(conn: Connection) -> None:
    """Forget what `keep` remembers of processes that are proven gone."""
    boot_id = clock.boot_id()
    for kind, kept in records.kept(conn):
        if kind == Kind.PROCESS.value and _is_gone(kept, boot_id):
            records.unkeep(conn, kind, kept)


def _is_gone(kept: str, boot_id: str) -> bool:
    values = kept.split("@")
    try:
        pairs = zip(KEPT_BY, values, strict=True)
        named = {k: v if k == "boot_id" else int(v) for k, v in pairs}
        process = identity.decode_identity(named)
    except (ValueError, InvalidValueError):
        # Not understood is not gone.
        return False
    return identity.presence(process, boot_id=boot_id)[0] is Presence.GONE
