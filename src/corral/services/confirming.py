"""Whether the proof still holds, asked right before each destructive call."""

from __future__ import annotations

from corral.decide.judge import World, judge
from corral.decide.keeping import is_kept
from corral.model.environment import Existence
from corral.model.resource import Verdict
from corral.services.owners import state_of
from corral.services.view import judged_environment, look
from corral.store import owners, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.contracts import View
    from corral.decide.judge import Request
    from corral.model.resource import Judgement
    from corral.services.context import Context


class Confirmation:
    """Reads the owner's epochs, the spool and what is kept again, and judges once more.

    Of what an environment owns, those of all owners: others may have come to live there.
    Safe to be called from several threads; each call reads the registry for a moment.
    """

    def __init__(self, context: Context, view: View, request: Request) -> None:
        import threading

        self._context = context
        self._view = view
        self._request = request
        self._lock = threading.Lock()

    def __call__(self, target: Judgement) -> str:
        """An empty text, or the reason why the target must now be left."""
        with self._lock:
            world, kept = self._read(target)
        sighting = target.sighting
        if is_kept(sighting, kept):
            return "kept on request"
        again = judge(sighting, world, self._request)
        return "" if again.verdict is Verdict.REAP else again.reason

    def _read(self, target: Judgement) -> tuple[World, set[tuple[str, str]]]:
        world = self._view.world
        if target.owner is None:
            # An environment's: whoever lives there by now has a say as well.
            fresh = look(self._context, wide=self._view.wide)
            owners_ = {**world.owners, **fresh.world.owners}
            sessions = {**world.sessions, **fresh.world.sessions}
            return World(owners_, sessions, fresh.world.environments), set(fresh.kept)
        known = dict(world.owners)
        from corral.store import spool

        with self._context.registry.read() as conn:
            kept = records.kept(conn)
            found = owners.find(conn, target.owner)
        if found is not None:
            (found,) = spool.overlay(self._context.state_dir, (found,))
            known[found.id] = state_of(found, self._context.settings.grace)
        places = dict(world.environments)
        place = places.get(target.environment or "")
        if place is not None and place.existence is Existence.GONE:
            places[place.environment.id] = judged_environment(self._context, place, known)
        return World(known, world.sessions, places), kept
