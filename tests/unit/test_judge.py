"""The one judge, a test for each of its branches."""

from __future__ import annotations

import pytest

from corral.decide.judge import Request, Trigger, World, judge
from corral.model.environment import Environment, EnvironmentState, Existence, Place
from corral.model.owner import Epoch, Life, Owner, OwnerState
from corral.model.resource import Kind, Mark, Proof, Sighting, Stack, Verdict

HERE, THERE, LOST, FOGGY = "env-here", "env-there", "env-lost", "env-foggy"
LIVE, OVER, GRACE, PERSON = "own-live", "own-over", "own-grace", "own-person"


def _environment(identifier: str, existence: Existence, living: set[str]) -> EnvironmentState:
    place = Place("/p", "path", "", "", "/p", "p", "", True, 1, 2)
    environment = Environment(identifier, place, "n", 0.0)
    return EnvironmentState(environment, existence, existence.value, frozenset(living))


def _owner(
    identifier: str, life: Life, *, implicit: str | None = None, session: str = ""
) -> OwnerState:
    epochs = () if implicit else (_epoch(identifier),)
    sessions = (session,) if session else ()
    owner = Owner(identifier, implicit, None, 50.0, sessions, epochs)
    return OwnerState(owner, life, life.value, life is Life.LIVE)


def _epoch(owner: str) -> Epoch:
    return Epoch(1, owner, HERE, "x", 100.0, "boot", None, None, "", None)


def _world(*, living_here: set[str] | None = None) -> World:
    owners = {
        LIVE: _owner(LIVE, Life.LIVE, session="s-live"),
        OVER: _owner(OVER, Life.OVER, session="s-over"),
        GRACE: _owner(GRACE, Life.GRACE, session="s-grace"),
        PERSON: _owner(PERSON, Life.LIVE, implicit=HERE),
    }
    environments = {
        HERE: _environment(HERE, Existence.PRESENT, living_here or set()),
        THERE: _environment(THERE, Existence.PRESENT, set()),
        LOST: _environment(LOST, Existence.GONE, set()),
        FOGGY: _environment(FOGGY, Existence.UNKNOWN, set()),
    }
    sessions = {s: o for o, state in owners.items() for s in state.owner.sessions}
    return World(owners, sessions, environments)


def _sighting(*marks: Mark, kind: Kind = Kind.CONTAINER, **fields: object) -> Sighting:
    base = Sighting(kind, "id", "name", "engine", "running", 500.0, (("id", "id"),), marks)
    return base._replace(**fields)  # type: ignore[arg-type]


def _owned(owner: str, environment: str | None = None) -> Mark:
    return Mark(Proof.LABEL, owner=owner, environment=environment)


REAP_LIVE = Request(Trigger.REAP, owner=LIVE)
CLEANUP = Request(Trigger.CLEANUP, now=1000.0)


@pytest.mark.parametrize(
    ("sighting", "verdict", "code"),
    [
        (_sighting(_owned(LIVE), shared=True), Verdict.KEEP, "shared"),
        (_sighting(_owned(LIVE), kept=True), Verdict.KEEP, "kept"),
        (_sighting(_owned(LIVE), protections=("an editor",)), Verdict.KEEP, "protected"),
        (_sighting(_owned(LIVE), creating=True), Verdict.KEEP, "creating"),
        (_sighting(), Verdict.UNKNOWN, "unmarked"),
        (_sighting(doubts=("on a claimed port",)), Verdict.UNKNOWN, "unmarked"),
        (_sighting(_owned(LIVE), doubts=("the image carries it",)), Verdict.UNKNOWN, "doubt"),
        (_sighting(_owned("own-stranger")), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(Mark(Proof.LABEL, session="nobody")), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(Mark(Proof.LABEL, session="")), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(Mark(Proof.LABEL, session=" ")), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(Mark(Proof.LABEL)), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(_owned(LIVE), _owned(OVER)), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(_owned(LIVE, HERE), _owned(LIVE, THERE)), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(_owned(LIVE, "env-stranger")), Verdict.UNKNOWN, "unknown-owner"),
        (_sighting(_owned(OVER)), Verdict.KEEP, "foreign"),
        (_sighting(_owned(LIVE)), Verdict.REAP, "owned"),
        (_sighting(Mark(Proof.LABEL, session="s-live")), Verdict.REAP, "owned"),
        (_sighting(_owned(LIVE), data=True), Verdict.KEEP, "data"),
    ],
)
def test_a_reap_takes_exactly_what_is_proven_to_be_the_owners(
    sighting: Sighting, verdict: Verdict, code: str
) -> None:
    judged = judge(sighting, _world(), REAP_LIVE)
    assert (judged.verdict, judged.code) == (verdict, code)
    assert judged.reason


def test_a_session_id_that_is_a_prefix_of_another_owns_nothing() -> None:
    judged = judge(_sighting(Mark(Proof.LABEL, session="s-liv")), _world(), REAP_LIVE)
    assert judged.verdict is Verdict.UNKNOWN
    assert "--session=s-liv" in judged.reason


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_session_id_owns_nothing_even_where_an_owner_has_it(blank: str) -> None:
    world = _world()
    world = world._replace(sessions={**world.sessions, blank: LIVE})
    judged = judge(_sighting(Mark(Proof.LABEL, session=blank)), world, REAP_LIVE)
    assert (judged.verdict, judged.code) == (Verdict.UNKNOWN, "unknown-owner")


def test_a_judgement_says_whose_the_thing_is() -> None:
    judged = judge(_sighting(_owned(LIVE, HERE)), _world(), CLEANUP)
    assert (judged.owner, judged.session, judged.environment) == (LIVE, "s-live", HERE)
    assert judged.proof is Proof.LABEL


@pytest.mark.parametrize(
    ("mark", "verdict", "code"),
    [
        (_owned(LIVE, LOST), Verdict.REAP, "environment-gone"),
        (_owned(OVER, HERE), Verdict.REAP, "owner-over"),
        (_owned(OVER), Verdict.REAP, "owner-over"),
        (_owned(GRACE), Verdict.KEEP, "grace"),
        (_owned(LIVE, HERE), Verdict.KEEP, "live"),
        (_owned(PERSON, HERE), Verdict.KEEP, "live"),
        (Mark(Proof.PROJECT, environment=HERE), Verdict.KEEP, "environment"),
        (Mark(Proof.PROJECT, environment=LOST), Verdict.REAP, "environment-gone"),
        (Mark(Proof.PROJECT, environment=FOGGY), Verdict.UNKNOWN, "environment-unknown"),
    ],
)
def test_cleanup_takes_what_is_proven_over_and_nothing_else(
    mark: Mark, verdict: Verdict, code: str
) -> None:
    judged = judge(_sighting(mark), _world(), CLEANUP)
    assert (judged.verdict, judged.code) == (verdict, code)


def test_cleanup_leaves_data_unless_it_is_asked_for() -> None:
    lost = _sighting(Mark(Proof.PATH, environment=LOST), kind=Kind.DIRECTORY, data=True)
    assert judge(lost, _world(), CLEANUP).code == "data"
    asked = CLEANUP._replace(data=True)
    assert judge(lost, _world(), asked).verdict is Verdict.REAP


@pytest.mark.parametrize(
    ("created", "code"), [(999.0, "age"), (None, "age"), (900.0, "owner-over")]
)
def test_cleanup_takes_only_what_is_old_enough(created: float | None, code: str) -> None:
    request = CLEANUP._replace(older_than=60.0)
    judged = judge(_sighting(_owned(OVER), created_at=created), _world(), request)
    assert judged.code == code


@pytest.mark.parametrize(
    ("owner", "code"), [(OVER, "owned"), (LIVE, "live"), (GRACE, "live"), ("own-x", "live")]
)
def test_a_released_owner_is_reaped_only_once_it_is_over(owner: str, code: str) -> None:
    request = Request(Trigger.RELEASE, owner=owner)
    mark = _owned(owner if owner != "own-x" else LIVE)
    assert judge(_sighting(mark), _world(), request).code == code


def _stack(oldest: float, *intents: str) -> Sighting:
    stack = Stack(oldest, frozenset(intents))
    return _sighting(Mark(Proof.PROJECT, environment=HERE), stack=stack)


def test_a_stack_that_the_owner_started_goes_with_its_owner() -> None:
    judged = judge(_stack(200.0, LIVE), _world(living_here={LIVE}), REAP_LIVE)
    assert judged.verdict is Verdict.REAP
    assert not judged.stop_only


def test_a_stack_without_the_owners_intent_is_only_stopped() -> None:
    judged = judge(_stack(200.0), _world(), REAP_LIVE)
    assert judged.verdict is Verdict.REAP
    assert judged.stop_only
    assert "stopped only" in judged.reason


def test_a_stack_is_left_while_another_owner_lives_there() -> None:
    judged = judge(_stack(200.0, LIVE), _world(living_here={LIVE, PERSON}), REAP_LIVE)
    assert (judged.verdict, judged.code) == (Verdict.KEEP, "shared-environment")


def test_a_stack_that_is_older_than_the_owner_is_left() -> None:
    judged = judge(_stack(99.0, LIVE), _world(), REAP_LIVE)
    assert (judged.verdict, judged.code) == (Verdict.KEEP, "shared-environment")


def test_the_implicit_owner_counts_from_its_own_beginning() -> None:
    request = Request(Trigger.REAP, owner=PERSON)
    assert judge(_stack(49.0, PERSON), _world(), request).code == "shared-environment"
    assert judge(_stack(51.0, PERSON), _world(), request).verdict is Verdict.REAP


def test_what_an_environment_owns_is_left_by_a_reap() -> None:
    thing = _sighting(Mark(Proof.PATH, environment=HERE), kind=Kind.DIRECTORY)
    assert judge(thing, _world(), REAP_LIVE).code == "environment"


@pytest.mark.parametrize("owner", [LIVE, "own-nobody", None])
def test_an_owner_that_was_never_there_does_not_touch_an_environment(owner: str | None) -> None:
    thing = _sighting(Mark(Proof.PROJECT, environment=THERE), stack=Stack(200.0, frozenset()))
    assert judge(thing, _world(), Request(Trigger.REAP, owner=owner)).code == "foreign"


DOWN = Request(Trigger.DOWN, owner=PERSON, environment=HERE, data=True)


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        (_owned(PERSON, HERE), "down"),
        (_owned(PERSON), "down"),
        (_owned(OVER, HERE), "down"),
        (_owned(LIVE, HERE), "foreign"),
        (_owned(GRACE, HERE), "foreign"),
        (_owned(OVER, THERE), "foreign"),
        (_owned(OVER), "foreign"),
        (Mark(Proof.PATH, environment=HERE), "down"),
        (Mark(Proof.PATH, environment=THERE), "foreign"),
    ],
)
def test_down_takes_the_environment_and_nothing_beyond(mark: Mark, code: str) -> None:
    assert judge(_sighting(mark), _world(), DOWN).code == code


def test_down_by_force_takes_a_live_owners_things_in_the_environment() -> None:
    request = DOWN._replace(force=True)
    assert judge(_sighting(_owned(LIVE, HERE)), _world(), request).verdict is Verdict.REAP
    assert judge(_sighting(_owned(LIVE, THERE)), _world(), request).verdict is Verdict.KEEP


def test_down_keeps_data_when_told_to() -> None:
    thing = _sighting(Mark(Proof.PATH, environment=HERE), data=True)
    judged = judge(thing, _world(), DOWN._replace(data=False))
    assert (judged.verdict, judged.code) == (Verdict.KEEP, "data")


@pytest.mark.parametrize(
    ("marks", "request_", "verdict", "code"),
    [
        ((None,), CLEANUP, Verdict.REAP, "run-directory-gone"),
        ((LIVE,), CLEANUP, Verdict.REAP, "run-directory-gone"),
        ((LIVE, OVER), CLEANUP, Verdict.UNKNOWN, "unknown-owner"),
        ((None,), CLEANUP._replace(older_than=9e9), Verdict.KEEP, "age"),
        ((None,), REAP_LIVE, Verdict.UNKNOWN, "unknown-owner"),
        ((LIVE,), REAP_LIVE, Verdict.REAP, "owned"),
        ((OVER,), REAP_LIVE, Verdict.KEEP, "foreign"),
    ],
)
def test_a_microvm_whose_run_directory_is_gone_is_an_orphan(
    marks: tuple[str | None, ...], request_: Request, verdict: Verdict, code: str
) -> None:
    proof = Proof.RUN_DIRECTORY_GONE
    sighting = _sighting(*(Mark(proof, owner=o) for o in marks), kind=Kind.MICROVM)
    found = judge(sighting, _world(), request_)
    assert (found.verdict, found.code) == (verdict, code)


@pytest.mark.parametrize(
    ("released", "oldest", "code"),
    [(300.0, 200.0, "owned"), (150.0, 200.0, "shared-environment"), (None, 200.0, "owned")],
)
def test_a_stack_that_was_made_after_its_owner_ended_is_left(
    released: float | None, oldest: float, code: str
) -> None:
    world = _world()
    over = world.owners[OVER]
    epochs = tuple(e._replace(released_at=released) for e in over.owner.epochs)
    owners = {**world.owners, OVER: over._replace(owner=over.owner._replace(epochs=epochs))}
    request = Request(Trigger.RELEASE, owner=OVER)
    judged = judge(_stack(oldest, OVER), world._replace(owners=owners), request)
    assert judged.code == code


def test_a_stack_is_left_by_a_reap_that_is_not_about_stacks() -> None:
    request = REAP_LIVE._replace(stacks=False)
    assert judge(_stack(200.0, LIVE), _world(), request).code == "environment"
