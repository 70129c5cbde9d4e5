"""The one judge: what to do with a resource, and why. Values in, verdict and reason out.

Every removal passes here. The burden of proof lies with REAP: exact proof of who owns it, and
proof (or the owner's own word) that it is over. Whatever cannot be told is UNKNOWN, and kept.
"""

from __future__ import annotations

from enum import Enum

from corral.model.environment import Existence
from corral.model.owner import Life
from corral.model.resource import Judgement, Proof, Verdict
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.model.environment import EnvironmentState
    from corral.model.owner import OwnerState
    from corral.model.resource import Mark, Sighting


class Trigger(Enum):
    """Who wants it gone: the owner itself, the end of an owner, a look for orphans, or `down`."""

    REAP = "reap"
    RELEASE = "release"
    CLEANUP = "cleanup"
    DOWN = "down"


class Request(NamedTuple):
    """What was asked. `owner`: who asks (reap, release) or acts (down). `environment`: for down.

    `data`: also what holds data. `force`: also another live owner's. `older_than` in seconds,
    against `now` (unix time); things of unknown age are younger than any age. `stacks`: a release
    also covers the compose stack that the owner alone used; long after it others may use it.
    """

    trigger: Trigger
    owner: str | None = None
    environment: str | None = None
    data: bool = False
    force: bool = False
    older_than: float | None = None
    now: float = 0.0
    stacks: bool = True


class World(NamedTuple):
    """What is proven of owners, session ids and environments."""

    owners: Mapping[str, OwnerState]
    sessions: Mapping[str, str]
    environments: Mapping[str, EnvironmentState]


class _Whose(NamedTuple):
    owner: str | None
    session: str | None
    environment: str | None
    proof: Proof | None
    doubt: str = ""


_KEEP, _REAP, _UNKNOWN = Verdict.KEEP, Verdict.REAP, Verdict.UNKNOWN
_Said = tuple[Verdict, str, str]


def judge(sighting: Sighting, world: World, request: Request) -> Judgement:
    """The verdict on one resource, with the reason in words and as a code."""
    whose = _whose(sighting.marks, world)
    verdict, code, reason = _verdict(sighting, whose, world, request)
    stop_only = verdict is _REAP and _only_stops(sighting, whose, request)
    if stop_only:
        reason += "; stopped only, since this owner did not start it through corral"
    return Judgement(
        sighting,
        verdict,
        reason,
        code,
        whose.owner,
        whose.session,
        whose.environment,
        whose.proof,
        stop_only,
    )


def _verdict(sighting: Sighting, whose: _Whose, world: World, request: Request) -> _Said:
    if sighting.shared:
        known = sighting.protections or ("part of the shared runtime: only ever shown",)
        return _KEEP, "shared", known[0]
    if sighting.kept:
        return _KEEP, "kept", "kept on request"
    if sighting.protections:
        return _KEEP, "protected", sighting.protections[0]
    if sighting.creating:
        return _KEEP, "creating", "being created"
    if not sighting.marks:
        return _UNKNOWN, "unmarked", (sighting.doubts or ("carries no mark",))[0]
    if sighting.doubts:
        return _UNKNOWN, "doubt", sighting.doubts[0]
    if request.trigger is Trigger.CLEANUP and _is_abandoned(sighting):
        said: _Said = (_REAP, "run-directory-gone", "orphan: its run directory is gone")
        return _narrowed(sighting, request) or said
    if whose.doubt:
        return _UNKNOWN, "unknown-owner", whose.doubt
    rule = {
        Trigger.REAP: _for_owner,
        Trigger.RELEASE: _for_release,
        Trigger.CLEANUP: _for_cleanup,
        Trigger.DOWN: _for_down,
    }[request.trigger]
    said = rule(whose, sighting, world, request)
    if said[0] is not _REAP:
        return said
    return _narrowed(sighting, request) or said


def _is_abandoned(sighting: Sighting) -> bool:
    """Whether it is a microVM whose run directory is gone: nobody's any more, whoever made it."""
    owners = {mark.owner for mark in sighting.marks if mark.owner is not None}
    gone = any(mark.proof is Proof.RUN_DIRECTORY_GONE for mark in sighting.marks)
    return gone and len(owners) <= 1


def _narrowed(sighting: Sighting, request: Request) -> _Said | None:
    """What holds back from a thing that may be taken: its data, or its age."""
    if sighting.data and not request.data:
        remedy = "corral down" if request.trigger in {Trigger.REAP, Trigger.RELEASE} else "--data"
        return _KEEP, "data", f"holds data; {remedy} takes it"
    if request.older_than is not None:
        if sighting.created_at is None:
            return _KEEP, "age", "its age is not known"
        if request.now - sighting.created_at < request.older_than:
            return _KEEP, "age", "younger than was asked for"
    return None


def _whose(marks: tuple[Mark, ...], world: World) -> _Whose:
    """The one owner and environment that all marks agree on."""
    owners, environments, sessions = set(), set(), set()
    for mark in marks:
        if mark.owner is not None:
            owners.add(mark.owner)
        if mark.session is not None:
            sessions.add(mark.session)
        if mark.environment is not None:
            environments.add(mark.environment)
    session = min(sessions) if len(sessions) == 1 else None
    proof = marks[0].proof if marks else None
    unknown = sorted(s for s in sessions if not s.strip() or s not in world.sessions)
    if unknown:
        return _Whose(None, session, None, proof, _no_owner(unknown[0]))
    owners |= {world.sessions[s] for s in sessions}
    doubt = _disagreement(owners, environments, world)
    owner = min(owners) if len(owners) == 1 else None
    environment = min(environments) if len(environments) == 1 else None
    if session is None and owner is not None and owner in world.owners:
        session = (world.owners[owner].owner.sessions or (None,))[-1]
    return _Whose(owner, session, environment, proof, doubt)


def _no_owner(session: str) -> str:
    if not session.strip():
        return "carries an empty session id, which owns nothing"
    from shlex import quote

    return (
        f"no owner has the session id {session!r}; corral reap --session={quote(session)} takes it"
    )


def _disagreement(owners: set[str], environments: set[str], world: World) -> str:
    if len(owners) > 1:
        return f"its marks name several owners: {', '.join(sorted(owners))}"
    if len(environments) > 1:
        return f"its marks name several environments: {', '.join(sorted(environments))}"
    for owner in owners:
        if owner not in world.owners:
            return f"names the owner {owner!r}, which this registry does not know"
    for environment in environments:
        if environment not in world.environments:
            return f"names the environment {environment!r}, which this registry does not know"
    if not owners and not environments:
        return "its mark names nobody"
    return ""


def _for_owner(whose: _Whose, sighting: Sighting, world: World, request: Request) -> _Said:
    if whose.owner is not None:
        if whose.owner == request.owner:
            return _REAP, "owned", "its owner asked"
        return _KEEP, "foreign", "belongs to another owner"
    return _shared_environment(whose, sighting, world, request)


def _for_release(whose: _Whose, sighting: Sighting, world: World, request: Request) -> _Said:
    state = world.owners.get(request.owner or "")
    if state is None or state.life is not Life.OVER:
        return _KEEP, "live", f"its owner lives: {state.reason}" if state else "nobody released it"
    return _for_owner(whose, sighting, world, request)


def _shared_environment(whose: _Whose, sighting: Sighting, world: World, request: Request) -> _Said:
    """Things that an environment owns prove an environment, not a worker."""
    state = world.owners.get(request.owner or "")
    if state is None or not _at_home(state, whose.environment):
        return _KEEP, "foreign", "belongs to an environment that this owner is not in"
    others = world.environments[whose.environment or ""].living - {request.owner}
    if others:
        return _KEEP, "shared-environment", "shared environment: another owner lives in it"
    if sighting.stack is None or not request.stacks:
        return _KEEP, "environment", "belongs to the environment; corral down takes it"
    first = min((e.opened_at for e in state.owner.epochs), default=state.owner.created_at)
    if sighting.stack.oldest < first:
        return _KEEP, "shared-environment", "shared environment: it is older than this owner"
    if state.life is Life.OVER and sighting.stack.oldest > _last_release(state):
        return _KEEP, "shared-environment", "shared environment: it was made after this owner ended"
    return _REAP, "owned", "the stack of this owner's environment, which nobody else uses"


def _last_release(state: OwnerState) -> float:
    """When the owner was released for the last time; infinite if an epoch just ended."""
    forever = float("inf")
    released = [forever if e.released_at is None else e.released_at for e in state.owner.epochs]
    return max(released, default=forever)


def _at_home(state: OwnerState, environment: str | None) -> bool:
    if state.owner.implicit_of == environment:
        return True
    return any(epoch.environment == environment for epoch in state.owner.epochs)


def _only_stops(sighting: Sighting, whose: _Whose, request: Request) -> bool:
    return (
        request.trigger in {Trigger.REAP, Trigger.RELEASE}
        and whose.owner is None
        and sighting.stack is not None
        and request.owner not in sighting.stack.intents
    )


def _for_cleanup(whose: _Whose, sighting: Sighting, world: World, request: Request) -> _Said:
    del sighting, request
    place = world.environments.get(whose.environment or "")
    if place is not None and place.existence is Existence.GONE:
        return _REAP, "environment-gone", f"orphan: {place.reason}"
    if whose.owner is None:
        reason = place.reason if place is not None else "it is not known"
        if place is not None and place.existence is Existence.UNKNOWN:
            return _UNKNOWN, "environment-unknown", reason
        return _KEEP, "environment", f"belongs to an environment that is there: {reason}"
    state = world.owners[whose.owner]
    if state.life is Life.OVER:
        return _REAP, "owner-over", f"orphan: {state.reason}"
    code = "grace" if state.life is Life.GRACE else "live"
    return _KEEP, code, f"its owner {'lives' if code == 'live' else 'may return'}: {state.reason}"


def _for_down(whose: _Whose, sighting: Sighting, world: World, request: Request) -> _Said:
    del sighting
    if whose.environment != request.environment:
        implicit = world.owners[whose.owner].owner.implicit_of if whose.owner else None
        if implicit is None or implicit != request.environment:
            return _KEEP, "foreign", "belongs to another environment"
    if whose.owner is not None and whose.owner != request.owner and not request.force:
        state = world.owners[whose.owner]
        if state.life is not Life.OVER:
            return _KEEP, "foreign", "belongs to another owner that lives in this environment"
    return _REAP, "down", "its environment is given up"
