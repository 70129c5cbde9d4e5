"""Whose a cluster is: one test for each proof and each doubt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corral.decide.cluster_tools import Listed
from corral.decide.clusters import Facts, Known, Node, exactly, gone, name_of, sightings
from corral.model.record import Record, RecordState
from corral.model.resource import Kind, Mark, Proof, Sighting

NAME = "corral-repo-1234abcd"
A, B = "a" * 64, "b" * 64


def node(identifier: str = A, **fields: Any) -> Node:
    made = Node(identifier, "running", 100.0, "daemon")
    return made._replace(**fields)


def facts(
    listed: dict[str, Listed] | list[str] | None = None,
    nodes: dict[str, tuple[Node, ...]] | None = None,
    tool: str = "kind",
) -> Facts:
    if isinstance(listed, list):
        listed = {name: Listed(name) for name in listed}
    daemons = frozenset({"daemon"}) if nodes is not None else frozenset()
    return Facts(tool, tool, listed, nodes, "the engine at unix:///s", daemons)


def record(
    state: RecordState = RecordState.INTENT, nodes: str = A, daemon: str = "daemon", **fields: Any
) -> Record:
    identity: tuple[tuple[str, str | int], ...] = ()
    if state is RecordState.LIVE:
        identity = (("name", NAME), ("nodes", nodes), ("daemon", daemon))
    made = Record(
        id="rec-1",
        kind=Kind.CLUSTER,
        backend="kind",
        role="cluster",
        name=NAME,
        owner="own-1",
        session=None,
        environment="env-1",
        state=state,
        identity=identity,
        creator=None,
        created_at=50.0,
        detail=json.dumps({}),
    )
    return made._replace(**fields)


def known(*records: Record, **fields: Any) -> Known:
    made = Known(records, environments=frozenset({"env-1"}), namespaces=("corral",))
    return made._replace(**fields)


def one(found: tuple[Sighting, ...]) -> Sighting:
    (sighting,) = found
    return sighting


BOTH = facts([NAME], {NAME: (node(B), node(A))})


@pytest.mark.parametrize("state", [RecordState.INTENT, RecordState.LIVE])
def test_a_recorded_cluster_is_its_owners(state: RecordState) -> None:
    seen = one(sightings(BOTH, known(record(state))))
    assert seen.marks == (Mark(Proof.RECORDED, "own-1", None, "env-1"),)
    assert (seen.id, seen.name, seen.record) == (f"kind/{NAME}", NAME, "rec-1")
    assert (seen.doubts, seen.state, seen.created_at) == ((), "running", 100.0)
    assert seen.identity == (("name", NAME), ("nodes", f"{A},{B}"), ("daemon", "daemon"))


def test_what_an_owner_made_stays_the_owners_when_its_environment_was_given_up() -> None:
    seen = one(sightings(BOTH, known(record(), environments=frozenset())))
    assert seen.marks == (Mark(Proof.RECORDED, "own-1"),)


def test_a_claimed_name_is_the_environments() -> None:
    seen = one(sightings(BOTH, known(claims={NAME: "env-1"})))
    assert seen.marks == (Mark(Proof.NAME, environment="env-1"),)
    assert seen.record is None


@pytest.mark.parametrize("name", ["my-prod", "kind", "corral", "corral-", "xcorral-s1"])
def test_a_cluster_of_the_users_is_not_even_listed(name: str) -> None:
    assert sightings(facts([name], {name: (node(),)}), known(sessions=frozenset({"s1"}))) == ()


def test_the_exact_name_of_a_session_is_that_sessions() -> None:
    seen = one(
        sightings(facts(["corral-s1"], {"corral-s1": (node(),)}), known(sessions=frozenset({"s1"})))
    )
    assert seen.marks == (Mark(Proof.NAME, session="s1"),)


def test_a_name_that_merely_begins_like_a_sessions_names_another_session() -> None:
    name = "corral-s1-more"
    seen = one(sightings(facts([name], {name: (node(),)}), known(sessions=frozenset({"s1"}))))
    assert seen.marks == (Mark(Proof.NAME, session="s1-more"),)


def test_a_recorded_name_is_not_also_read_as_a_session() -> None:
    seen = one(sightings(BOTH, known(record())))
    assert all(mark.session is None for mark in seen.marks)


def test_labels_on_all_nodes_are_a_mark() -> None:
    labelled = node(named=("own-2", None, "env-1"), keep=True)
    tools = node(B, counts=False)
    seen = one(sightings(facts(["mine"], {"mine": (labelled, tools)}, "k3d"), known()))
    assert seen.marks == (Mark(Proof.LABEL, "own-2", None, "env-1"),)
    assert seen.kept
    assert seen.doubts == ()
    assert dict(seen.identity)["nodes"] == A


def test_a_label_on_some_nodes_is_doubted() -> None:
    nodes = (node(named=("own-2", None, None)), node(B))
    seen = one(sightings(facts(["mine"], {"mine": nodes}, "k3d"), known()))
    assert seen.doubts == ("only some of its nodes carry the label",)


def test_an_environment_alone_on_a_node_marks_nothing() -> None:
    nodes = (node(named=(None, None, "env-1")),)
    assert sightings(facts(["mine"], {"mine": nodes}, "k3d"), known()) == ()


def test_a_session_on_all_nodes_is_a_mark() -> None:
    nodes = (node(named=(None, "s1", None)),)
    seen = one(sightings(facts(["mine"], {"mine": nodes}, "k3d"), known()))
    assert seen.marks == (Mark(Proof.LABEL, None, "s1"),)


def test_listed_without_a_node_is_a_doubt_that_names_both() -> None:
    seen = one(sightings(facts([NAME], {}), known(record())))
    assert seen.doubts == ("kind lists it, but the engine at unix:///s has no node of it",)
    assert seen.state == "present"


def test_nodes_that_the_tool_does_not_list_are_a_doubt_that_names_both() -> None:
    seen = one(sightings(facts([], {NAME: (node(),)}), known(record())))
    (doubt,) = seen.doubts
    assert doubt == f"the engine at unix:///s has its nodes ({A[:12]}), but kind does not list it"


def test_a_virtual_machine_has_no_nodes_in_an_engine() -> None:
    listed = {NAME: Listed(NAME, "stopped", "kvm2")}
    seen = one(sightings(facts(listed, {}, "minikube"), known(record())))
    assert seen.doubts == ()
    assert seen.state == "stopped"
    assert seen.created_at == 50.0


def test_without_the_tool_the_nodes_are_enough() -> None:
    seen = one(sightings(facts(None, {NAME: (node(state="exited"),)}), known(record())))
    assert seen.doubts == ()
    assert seen.state == "exited"


def test_without_an_engine_the_tools_word_is_enough() -> None:
    seen = one(sightings(facts([NAME]), known(record())))
    assert seen.doubts == ()
    assert dict(seen.identity)["nodes"] == ""


def test_a_replaced_cluster_is_not_the_recorded_one() -> None:
    recorded = record(RecordState.LIVE, nodes=A)
    replaced = facts(["other"], {"other": (node(B),)})
    renamed = recorded._replace(identity=(("name", "other"), ("nodes", A), ("daemon", "daemon")))
    assert sightings(replaced, known(renamed)) == ()
    assert gone(replaced, known(renamed)) == ("rec-1",)


def test_a_cluster_that_got_more_nodes_is_the_recorded_one() -> None:
    seen = one(sightings(BOTH, known(record(RecordState.LIVE, nodes=A))))
    assert seen.record == "rec-1"


def test_what_is_being_created_is_shown_before_anything_is_there() -> None:
    around = known(record(), creating=frozenset({"rec-1"}))
    seen = one(sightings(facts([], {}), around))
    assert seen.creating
    assert seen.state == "creating"
    assert seen.identity == (("record", "rec-1"),)
    assert gone(facts([], {}), around) == ()


def test_what_is_being_created_says_so_when_it_is_half_there() -> None:
    around = known(record(), creating=frozenset({"rec-1"}))
    assert one(sightings(BOTH, around)).creating


@pytest.mark.parametrize("state", [RecordState.INTENT, RecordState.LIVE])
def test_a_record_of_what_nobody_has_any_more_is_gone(state: RecordState) -> None:
    assert gone(facts([], {}), known(record(state))) == ("rec-1",)
    assert sightings(facts([], {}), known(record(state))) == ()


def test_a_record_of_what_is_there_is_not_gone() -> None:
    assert gone(BOTH, known(record(RecordState.LIVE))) == ()


def test_without_the_tool_nodes_that_are_gone_prove_the_end() -> None:
    assert gone(facts(None, {}), known(record(RecordState.LIVE))) == ("rec-1",)


def test_without_the_tool_the_engine_knows_of_every_cluster_of_containers() -> None:
    assert gone(facts(None, {}), known(record())) == ("rec-1",)


def test_without_the_tool_nobody_can_tell_what_became_of_a_virtual_machine() -> None:
    around = facts(None, {}, "minikube")
    seen = one(sightings(around, known(record())))
    assert seen.doubts == ("minikube is not here, so nobody can tell what became of it",)
    assert gone(around, known(record())) == ()


def test_without_an_engine_nodes_that_were_recorded_are_not_gone() -> None:
    recorded = record(RecordState.LIVE, daemon="")
    assert gone(facts([]), known(recorded)) == ()
    assert gone(facts([]), known(record())) == ("rec-1",)


def test_another_engine_than_the_recorded_one_proves_nothing() -> None:
    recorded = record(RecordState.LIVE, daemon="another")
    seen = one(sightings(facts([], {}), known(recorded)))
    assert seen.doubts == ("recorded in another engine than the one that answers here now",)
    assert gone(facts([], {}), known(recorded)) == ()


def test_a_cluster_is_found_by_name_or_id_marked_or_not() -> None:
    around = facts(["my-prod"], {"my-prod": (node(created=None),)})
    seen = exactly(around, known(), "my-prod")
    assert seen is not None
    assert seen.marks == ()
    assert seen.created_at is None
    assert exactly(around, known(), "kind/my-prod") == seen
    assert exactly(around, known(), "my") is None


def test_a_record_names_its_cluster_by_its_identity_first() -> None:
    assert name_of(record(name="alias")) == "alias"
    assert name_of(record(RecordState.LIVE, name="alias")) == NAME
