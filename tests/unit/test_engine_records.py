"""Records that lead to an engine, after a look into it."""

from __future__ import annotations

import pytest

from corral.backends.engine import recorded, registry_view
from corral.backends.engine.ownership import Holdings
from corral.backends.engine.projects import Claimed
from corral.backends.engine.views import Container, Network, Volume
from corral.kernel.identity import own_identity
from corral.model.environment import Claim, ClaimKind
from corral.model.record import Record, RecordState
from corral.model.resource import Kind, Mark, Proof, Sighting
from support.engine_views import ENVIRONMENT, OWNER, SESSION, view

PLACE = "unix:///s"
_GONE = own_identity()._replace(pid=2**22 + 1)


def record(
    *,
    state: RecordState = RecordState.LIVE,
    identity: tuple[tuple[str, str | int], ...] = (),
    role: str = "adopted",
    name: str = "",
    place: str = PLACE,
    kind: Kind = Kind.CONTAINER,
    lives: bool | None = None,
) -> Record:
    creator = {True: own_identity(), False: _GONE, None: None}[lives]
    return Record(
        "r1", kind, "docker", role, name, OWNER, None, ENVIRONMENT, state, identity, creator, 5.0,
        f'{{"place": "{place}"}}',
    )  # fmt: skip


def container(name: str = "web", project: str = "") -> Container:
    labels = {"com.docker.compose.project": project} if project else {}
    return Container(name, name, "img", "img", labels, 1.0, "running", (), ())


def account(
    row: Record, *containers: Container, found: tuple[Sighting, ...] = (), daemon: str = "D"
) -> tuple[list[str], list[Sighting]]:
    held = Holdings(
        "docker", daemon, containers, (Network("n", "n", {}, "", None),),
        (Volume("v", {}, "", None, ""),), {}, {},
    )  # fmt: skip
    return recorded.account_for(view(records=(row,)), PLACE, held, found)


PINNED = (("id", "web"), ("daemon", "D"))


def test_what_is_there_is_not_gone() -> None:
    assert account(record(identity=PINNED), container()) == ([], [])


def test_what_its_own_engine_no_longer_has_is_gone() -> None:
    assert account(record(identity=PINNED)) == (["r1"], [])


def test_another_engine_at_the_same_place_proves_nothing() -> None:
    gone, (shown,) = account(record(identity=PINNED), daemon="E")
    assert gone == []
    assert (shown.id, shown.record, shown.identity) == ("web", "r1", PINNED)
    assert "another engine" in shown.doubts[0]


def test_another_engine_elsewhere_says_nothing_at_all() -> None:
    assert account(record(identity=PINNED, place="unix:///t"), daemon="E") == ([], [])


def test_records_of_other_kinds_are_somebody_else_s() -> None:
    assert account(record(kind=Kind.CLUSTER, identity=PINNED)) == ([], [])


def labelled(**mark: str) -> Sighting:
    return Sighting(
        Kind.CONTAINER, "web", "web", "docker", "running", 1.0, PINNED,
        marks=(Mark(Proof.LABEL, **mark),),
    )  # fmt: skip


def test_an_intent_of_a_live_creator_is_being_created() -> None:
    intent = record(state=RecordState.INTENT, role="labelled", lives=True)
    gone, (shown,) = account(intent)
    assert (gone, shown.creating, shown.record) == ([], True, "r1")


@pytest.mark.parametrize("lives", [False, None])
def test_an_intent_that_came_to_nothing_is_gone(lives: bool | None) -> None:
    assert account(record(state=RecordState.INTENT, role="labelled", lives=lives)) == (["r1"], [])


@pytest.mark.parametrize("mark", [{"owner": OWNER}, {"session": SESSION}])
def test_an_intent_is_needed_while_something_of_its_owner_is_there(mark: dict[str, str]) -> None:
    intent = record(state=RecordState.INTENT, role="labelled", lives=False)
    assert account(intent, found=(labelled(**mark),)) == ([], [])
    assert account(intent, found=(labelled(owner="another"),)) == (["r1"], [])


def test_a_compose_intent_is_needed_while_its_project_is_there() -> None:
    intent = record(state=RecordState.INTENT, role="compose", name="p", lives=False)
    assert account(intent, container(project="p")) == ([], [])
    assert account(intent, container(project="q")) == (["r1"], [])


@pytest.mark.parametrize(
    "detail", ["{}", '{"place": 3}', '{"place"', '["place"]', '{"other": "place"}']
)
def test_a_detail_without_a_place_leads_nowhere(detail: str) -> None:
    assert recorded.place_of(record()._replace(detail=detail)) == ""


def test_only_things_in_engines_lead_to_one() -> None:
    assert recorded.place_of(record()) == PLACE
    assert recorded.place_of(record(kind=Kind.PROCESS)) == ""


def test_claims_say_which_projects_and_ports_are_whose() -> None:
    intent = record(state=RecordState.INTENT, role="compose", name="p")
    known = registry_view.known(
        view(project="p", path="/work/here", ports=(22001,), records=(intent,))
    )
    assert known.namespaces == ("corral",)
    assert known.ports == {22001}
    project = known.projects["p"]
    assert project == Claimed(ENVIRONMENT, frozenset({"/work/here"}), frozenset({OWNER}))
    assert known.records == {}


@pytest.mark.parametrize(
    ("detail", "more"),
    [
        ('{"directories": ["/work/here/deploy"]}', {"/work/here/deploy"}),
        ('{"directories": "x"}', set()),
        ("in words", set()),
        ("[]", set()),
    ],
)
def test_a_claim_may_name_more_directories(detail: str, more: set[str]) -> None:
    claim = Claim(ClaimKind.NAME, "compose", "p", "compose", ENVIRONMENT, None, "", 0.0, detail)
    around = view(path="/work/here")._replace(claims=(claim,))
    assert registry_view.known(around).paths[ENVIRONMENT] == {"/work/here"} | more


def test_live_records_are_known_by_their_identity() -> None:
    row = record(identity=PINNED)
    assert registry_view.known(view(records=(row,))).records == {(Kind.CONTAINER, PINNED): row}
