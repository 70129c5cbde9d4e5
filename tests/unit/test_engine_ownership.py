"""Which things of an engine are whose: one test for each proof, doubt and refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corral.backends.engine import ownership
from corral.backends.engine.ownership import Holdings, sightings
from corral.backends.engine.projects import Claimed
from corral.backends.engine.proofs import Known
from corral.backends.engine.views import Container, Mount, Network, Volume
from corral.model.record import Record, RecordState
from corral.model.resource import Kind, Mark, Proof, Sighting, Stack

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT = "com.docker.compose.project"
WORKING_DIR = "com.docker.compose.project.working_dir"
HERE = "/work/here"
CLAIMED = {"corral-web-1": Claimed("env-1", frozenset({HERE}), frozenset({"o1"}))}


def container(
    name: str = "web",
    labels: Mapping[str, str] | None = None,
    *,
    image: str = "img",
    created: float = 100.0,
    ports: tuple[int, ...] = (),
    image_name: str = "busybox",
) -> Container:
    return Container(
        f"id-{name}", name, image, image_name, labels or {}, created, "running",
        (Mount("volume", "data", ""),), ports,
    )  # fmt: skip


def network(name: str, labels: Mapping[str, str] | None = None) -> Network:
    return Network(f"id-{name}", name, labels or {}, "2026-01-01", 50.0)


def volume(name: str, labels: Mapping[str, str] | None = None) -> Volume:
    return Volume(name, labels or {}, "2026-01-02", 60.0, f"/v/{name}/_data")


def known(
    *,
    projects: Mapping[str, Claimed] | None = None,
    records: tuple[Record, ...] = (),
    kept: frozenset[tuple[str, str]] = frozenset(),
    ports: frozenset[int] = frozenset(),
    places: Mapping[str, str] | None = None,
    namespaces: tuple[str, ...] = ("corral",),
) -> Known:
    return Known(
        namespaces, projects or {}, {(r.kind, r.identity): r for r in records}, kept, ports,
        {"env-1": frozenset({HERE})}, places or {},
    )  # fmt: skip


def look(
    *things: Container | Network | Volume,
    knowing: Known | None = None,
    images: Mapping[str, Mapping[str, str] | None] | None = None,
    births: Mapping[str, str] | None = None,
) -> list[Sighting]:
    holdings = Holdings(
        "docker",
        "D1",
        tuple(t for t in things if isinstance(t, Container)),
        tuple(t for t in things if isinstance(t, Network)),
        tuple(t for t in things if isinstance(t, Volume)),
        images if images is not None else {"img": {}},
        births or {},
    )
    return list(sightings(holdings, knowing or known()))


def record(kind: Kind, identity: tuple[tuple[str, str | int], ...]) -> Record:
    return Record(
        "r1", kind, "docker", "adopted", "x", "o1", None, "env-1", RecordState.LIVE, identity,
        None, 1.0,
    )  # fmt: skip


def test_what_carries_nothing_is_not_even_listed() -> None:
    assert look(container("my-prod"), network("net"), volume("data")) == []


def test_an_owner_label_is_a_mark() -> None:
    (seen,) = look(container(labels={"corral.owner": "o1"}))
    assert seen.marks == (Mark(Proof.LABEL, "o1"),)
    assert (seen.kind, seen.id, seen.name, seen.backend) == (
        Kind.CONTAINER, "id-web", "web", "docker",
    )  # fmt: skip
    assert seen.identity == (("id", "id-web"), ("daemon", "D1"))
    assert (seen.state, seen.created_at, seen.doubts) == ("running", 100.0, ())
    assert seen.stack is None


def test_a_session_label_is_a_mark() -> None:
    (seen,) = look(container(labels={"corral.session": "abc"}))
    assert seen.marks == (Mark(Proof.LABEL, session="abc"),)


def test_the_environment_beside_an_owner_counts_only_while_it_exists() -> None:
    both = {"corral.owner": "o1", "corral.env": "env-1"}
    assert look(container(labels=both))[0].marks == (Mark(Proof.LABEL, "o1", environment="env-1"),)
    gone = {"corral.owner": "o1", "corral.env": "env-9"}
    assert look(container(labels=gone))[0].marks == (Mark(Proof.LABEL, "o1"),)


@pytest.mark.parametrize("empty", ["", " ", "\t\n"])
def test_an_empty_label_owns_nothing(empty: str) -> None:
    assert look(container(labels={"corral.owner": empty, "corral.session": empty})) == []


@pytest.mark.parametrize(
    "labels",
    [
        {"corral.ownerx": "o1"},
        {"Corral.owner": "o1"},
        {"note": "a,corral.owner=o1"},
        {"foundry.owner": "o1"},
    ],
)
def test_a_label_that_only_looks_like_a_mark_is_none(labels: dict[str, str]) -> None:
    assert look(container(labels=labels)) == []


def test_another_namespace_in_use_has_labels_of_its_own() -> None:
    (seen,) = look(
        container(labels={"foundry.session": "s"}),
        knowing=known(namespaces=("corral", "foundry")),
    )
    assert seen.marks == (Mark(Proof.LABEL, session="s"),)


def test_a_label_that_the_image_carries_is_doubted() -> None:
    labels = {"corral.owner": "o1"}
    (seen,) = look(container(labels=labels), images={"img": labels})
    assert seen.marks == (Mark(Proof.LABEL, "o1"),)
    assert "image carries the same label" in seen.doubts[0]


def test_a_label_that_differs_from_the_image_s_is_a_mark() -> None:
    (seen,) = look(container(labels={"corral.owner": "o2"}), images={"img": {"corral.owner": "o1"}})
    assert (seen.marks, seen.doubts) == ((Mark(Proof.LABEL, "o2"),), ())


def test_a_true_mark_is_not_weakened_by_one_from_the_image() -> None:
    labels = {"corral.owner": "o1", "corral.session": "mine"}
    (seen,) = look(container(labels=labels), images={"img": {"corral.owner": "o1"}})
    assert (seen.marks, seen.doubts) == ((Mark(Proof.LABEL, session="mine"),), ())


def test_with_the_image_gone_a_label_proves_nothing() -> None:
    (seen,) = look(container(labels={"corral.owner": "o1"}), images={"img": None})
    assert "image is gone" in seen.doubts[0]


def test_with_the_image_gone_a_record_still_proves() -> None:
    row = record(Kind.CONTAINER, ownership.container_identity("id-web", "D1"))
    (seen,) = look(container(), images={"img": None}, knowing=known(records=(row,)))
    assert seen.marks == (Mark(Proof.RECORDED, "o1", environment="env-1"),)
    assert (seen.doubts, seen.record) == ((), "r1")


def test_a_record_of_another_daemon_proves_nothing_here() -> None:
    row = record(Kind.CONTAINER, ownership.container_identity("id-web", "D2"))
    assert look(container(), knowing=known(records=(row,))) == []


def test_the_keep_label_keeps() -> None:
    (seen,) = look(container(labels={"corral.owner": "o1", "corral.keep": "true"}))
    assert seen.kept
    (seen,) = look(container(labels={"corral.owner": "o1", "corral.keep": "false"}))
    assert not seen.kept


def test_what_was_named_to_be_kept_is_kept() -> None:
    (seen,) = look(
        container(labels={"corral.owner": "o1"}),
        knowing=known(kept=frozenset({("container", "id-web")})),
    )
    assert seen.kept


def member(name: str = "web", directory: str | None = HERE, **more: str) -> Container:
    labels = {PROJECT: "corral-web-1", **more}
    if directory is not None:
        labels[WORKING_DIR] = directory
    return container(name, labels)


def test_a_claimed_project_started_here_belongs_to_the_environment() -> None:
    stack = {PROJECT: "corral-web-1"}
    seen = look(
        member(),
        member("db")._replace(created=40.0),
        network("default", stack),
        volume("data", stack),
        knowing=known(projects=CLAIMED),
    )
    assert [s.kind for s in seen] == [Kind.CONTAINER, Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME]
    for each in seen:
        assert each.marks == (Mark(Proof.PROJECT, environment="env-1"),)
        assert each.doubts == ()
        assert each.stack == Stack(40.0, frozenset({"o1"}))


def test_a_symlinked_working_directory_is_resolved() -> None:
    (seen,) = look(
        member(directory="/link"), knowing=known(projects=CLAIMED, places={"/link": HERE})
    )
    assert seen.doubts == ()


@pytest.mark.parametrize("elsewhere", ["/work/other", f"{HERE}/nested", None])
def test_one_container_from_elsewhere_puts_the_whole_project_in_doubt(
    elsewhere: str | None,
) -> None:
    stack = {PROJECT: "corral-web-1"}
    seen = look(
        member(),
        member("copy", elsewhere),
        network("default", stack),
        volume("data", stack),
        knowing=known(projects=CLAIMED),
    )
    assert len(seen) == 4
    assert all("copy" in s.doubts[0] for s in seen)


@pytest.mark.parametrize("name", ["corral-web-11", "corral-web", "Corral-web-1", ""])
def test_only_exactly_the_claimed_project_is_the_environment_s(name: str) -> None:
    labels = {PROJECT: name, WORKING_DIR: HERE}
    things = (container(labels=labels), network("n", labels), volume("v", labels))
    assert look(*things, knowing=known(projects=CLAIMED)) == []


def test_networks_and_volumes_alone_are_as_old_as_the_oldest() -> None:
    stack = {PROJECT: "corral-web-1"}
    seen = look(network("n", stack), volume("v", stack), knowing=known(projects=CLAIMED))
    assert {s.stack for s in seen} == {Stack(50.0, frozenset({"o1"}))}


def test_an_image_made_from_a_project_s_container_makes_no_member() -> None:
    labels = {PROJECT: "corral-web-1", WORKING_DIR: HERE}
    seen = look(
        container("copy", labels, image="committed"),
        member("web"),
        images={"img": {}, "committed": labels},
        knowing=known(projects=CLAIMED),
    )
    assert [s.name for s in seen] == ["web"]


def test_an_image_that_compose_built_still_makes_members() -> None:
    (seen,) = look(
        member(), images={"img": {PROJECT: "corral-web-1"}}, knowing=known(projects=CLAIMED)
    )
    assert (seen.doubts, seen.marks[0].proof) == ((), Proof.PROJECT)


def test_a_project_that_another_environment_s_label_contradicts_names_both() -> None:
    contradicting = member(**{"corral.env": "env-2"})
    (seen,) = look(contradicting, knowing=known(projects=CLAIMED))
    assert {m.environment for m in seen.marks} == {"env-1", "env-2"}


def test_an_owner_s_own_label_wins_over_the_project() -> None:
    (seen,) = look(
        member("web", "/elsewhere", **{"corral.owner": "o1"}), knowing=known(projects=CLAIMED)
    )
    assert (seen.marks, seen.doubts, seen.stack) == ((Mark(Proof.LABEL, "o1"),), (), None)


def test_a_lone_environment_label_is_a_mark() -> None:
    (seen,) = look(volume("v", {"corral.env": "env-1"}))
    assert seen.marks == (Mark(Proof.LABEL, environment="env-1"),)


def test_an_environment_label_in_an_unclaimed_project_counts_only_in_its_directory() -> None:
    labels = {PROJECT: "other", "corral.env": "env-1", WORKING_DIR: HERE}
    assert look(container(labels=labels))[0].doubts == ()
    labels[WORKING_DIR] = "/work/copied"
    assert "/work/copied" in look(container(labels=labels))[0].doubts[0]
    del labels[WORKING_DIR]
    assert "unknown directory" in look(container(labels=labels))[0].doubts[0]


def test_named_volumes_hold_data_and_anonymous_ones_do_not() -> None:
    label = {"corral.owner": "o1"}
    named, anonymous = look(volume("data", label), volume("a" * 64, label))
    assert (named.data, anonymous.data) == (True, False)
    assert named.identity == (("name", "data"), ("created", "2026-01-02"), ("daemon", "D1"))


def test_a_birth_that_does_not_move_replaces_a_volume_s_date() -> None:
    (seen,) = look(volume("data", {"corral.owner": "o1"}), births={"data": "123"})
    assert ("created", "123") in seen.identity


def test_recorded_networks_and_volumes_are_found_by_their_identity() -> None:
    net, vol = network("n"), volume("v")
    rows = (
        record(Kind.NETWORK, ownership.network_identity(net, "D1")),
        record(Kind.VOLUME, ownership.volume_identity(vol, vol.stamp, "D1")),
    )
    seen = look(net, vol, knowing=known(records=rows))
    assert [s.marks[0].proof for s in seen] == [Proof.RECORDED] * 2
    remade = net._replace(stamp="2027-01-01")
    assert look(remade, knowing=known(records=rows)) == []


def test_the_engine_s_own_networks_are_never_seen() -> None:
    assert look(network("bridge", {"corral.owner": "o1"})) == []


@pytest.mark.parametrize("tool", ["io.x-k8s.kind.cluster", "k3d.cluster"])
def test_nodes_of_clusters_are_left_to_the_cluster(tool: str) -> None:
    labels = {"corral.owner": "o1", tool: "c"}
    assert look(container(labels=labels), network("n", labels)) == []


def test_testcontainers_are_shown_and_never_touched() -> None:
    (seen,) = look(container(labels={"org.testcontainers.sessionId": "s1"}))
    assert seen.protections == ("belongs to Testcontainers session s1: only ever shown",)
    (ryuk,) = look(container(labels={"org.testcontainers": "true"}))
    assert "unknown" in ryuk.protections[0]


def test_a_marked_testcontainer_is_the_owner_s() -> None:
    labels = {"org.testcontainers.sessionId": "s1", "corral.session": "mine"}
    (seen,) = look(container(labels=labels))
    assert (seen.protections, len(seen.marks)) == ((), 1)


def test_an_unmarked_container_on_a_claimed_port_is_shown() -> None:
    (seen,) = look(container(ports=(22001,)), knowing=known(ports=frozenset({22001})))
    assert (seen.marks, seen.doubts) == ((), ("publishes the claimed port 22001 without a mark",))
    other = container(ports=(22002,))
    assert look(other, knowing=known(ports=frozenset({22001}))) == []


@pytest.mark.parametrize(
    "image",
    ["localstack/localstack:3", "r.io:5000/localstack/localstack-pro@sha256:1", "localstack"],
)
def test_what_a_marked_localstack_seems_to_have_started_is_shown(image: str) -> None:
    main = container("localstack-main", {"corral.owner": "o1"}, image_name=image)
    spawned = container("localstack-main-lambda-resize-1a2b")
    marked = container("localstack-main-lambda-other-1", {"corral.owner": "o1"})
    seen = look(main, spawned, marked, container("localstack-mainland"))
    assert [s.name for s in seen] == [main.name, marked.name, spawned.name]
    assert (seen[2].marks, seen[2].doubts) == (
        (), ("looks like a Lambda of localstack-main, but carries no mark",),
    )  # fmt: skip


def test_the_lambdas_of_somebody_else_s_localstack_are_not_listed() -> None:
    main = container("localstack-main", image_name="localstack/localstack")
    assert look(main, container("localstack-main-lambda-x-1")) == []
