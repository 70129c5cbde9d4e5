"""Clusters of kind, k3d and minikube, as a user makes them: stand-in tools, a stand-in engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import Agent
from support.command import COMMAND, Said, ask, corral
from support.standins.cluster_tool import LABELS, TOKEN
from support.standins.engine import StandInEngine
from support.standins.programs import on_path
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.processes import Tracker
    from support.standins.state import State

CREATE = {
    "kind": ("kind", "create", "cluster"),
    "k3d": ("k3d", "cluster", "create"),
    "minikube": ("minikube", "start"),
}
EVERY_TOOL = pytest.mark.parametrize("tool", CREATE)
NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}


@pytest.fixture
def engine(private_root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInEngine]:
    """The engine that DOCKER_HOST leads to."""
    with StandInEngine(private_root / "engine") as running:
        monkeypatch.setenv("DOCKER_HOST", running.host)
        yield running


@pytest.fixture
def state(engine: StandInEngine, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """All three tools on PATH, over the same engine."""
    del engine
    return on_path(monkeypatch, private_root / "engine", *CREATE)


def create(where: Path, tool: str, *words: str, **options: Any) -> Said:
    return corral(where, "run", "--", *CREATE[tool], *words, **options)


def clusters(state: State, tool: str) -> dict[str, Any]:
    found: dict[str, Any] = state.read()["clusters"].get(tool, {})
    return found


def rows(where: Path, group: str = "owned", **options: Any) -> list[dict[str, Any]]:
    seen = ask(where, "status", "--all", **options)
    return [r for r in seen[group] if r["kind"] == "cluster"]


def every_row(where: Path, **options: Any) -> list[dict[str, Any]]:
    groups = ("owned", "kept", "shared", "orphans", "unknown")
    return [r for group in groups for r in rows(where, group, **options)]


def backend(where: Path, name: str, **options: Any) -> dict[str, Any]:
    options = {"check": None, **options}
    (found,) = [
        b for b in ask(where, "status", "--all", **options)["backends"] if b["name"] == name
    ]
    return dict(found)


def by_hand(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


@EVERY_TOOL
def test_a_cluster_gets_the_environments_name_and_kubeconfig(
    git_repo: Path, state: State, state_dir: Path, private_home: Path, tool: str
) -> None:
    create(git_repo, tool)
    ((name, cluster),) = clusters(state, tool).items()
    assert name.startswith("corral-repo-")
    assert len(name) <= 32
    environment = ask(git_repo, "status")["environment"]["id"]
    kubeconfig = state_dir / "environments" / environment / "kubeconfig"
    assert cluster["kubeconfig"] == str(kubeconfig)
    assert kubeconfig.exists()
    assert not (private_home / ".kube").exists()
    (row,) = rows(git_repo)
    assert (row["name"], row["id"], row["backend"]) == (name, f"{tool}/{name}", tool)
    assert row["identity"]["nodes"]


@EVERY_TOOL
def test_a_reap_deletes_it_by_its_tool_with_its_own_kubeconfig(
    git_repo: Path, state: State, tool: str
) -> None:
    create(git_repo, tool)
    ((name, cluster),) = clusters(state, tool).items()
    report = ask(git_repo, "reap")
    assert [r["id"] for r in report["removed"]] == [f"{tool}/{name}"]
    assert report["remaining"] == []
    assert clusters(state, tool) == {}
    assert state.read()["containers"] == {}
    assert state.read()["kubeconfigs"] == [cluster["kubeconfig"]]
    assert every_row(git_repo) == []
    events = ask(git_repo, "events")["events"]
    assert [e["resource"] for e in events if e["action"] == "removed"] == [f"{tool}/{name}"]


def test_variables_are_exported_only_where_something_was_claimed(
    git_repo: Path, worktree: Callable[[str], Path], state: State
) -> None:
    other = worktree("other")
    corral(other, "up", "--port", "web")
    create(git_repo, "kind")
    create(git_repo, "k3d")
    ((name, cluster),) = clusters(state, "kind").items()
    found = ask(git_repo, "env", "--format", "json")
    variables = dict(found["variables"]) if "variables" in found else found
    assert variables["KIND_CLUSTER_NAME"] == name
    assert variables["KUBECONFIG"] == cluster["kubeconfig"]
    assert "MINIKUBE_PROFILE" not in variables
    said = corral(other, "env").out
    assert "KIND" not in said
    assert "KUBECONFIG" not in said


def test_a_later_command_finds_the_cluster_by_its_variables(git_repo: Path, state: State) -> None:
    create(git_repo, "kind")
    ((name, _),) = clusters(state, "kind").items()
    said = corral(git_repo, "run", "--", "sh", "-c", "echo $KIND_CLUSTER_NAME; echo $KUBECONFIG")
    assert said.out.splitlines()[0] == name
    assert said.out.splitlines()[1].endswith("/kubeconfig")
    corral(git_repo, "run", "--", "kind", "delete", "cluster")
    assert clusters(state, "kind") == {}
    assert every_row(git_repo) == []


def test_two_worktrees_have_clusters_of_their_own(
    git_repo: Path, worktree: Callable[[str], Path], state: State
) -> None:
    long = worktree("a-branch-with-a-name-that-is-much-longer-than-k3d-takes")
    for where in (git_repo, long):
        create(where, "k3d")
    names = set(clusters(state, "k3d"))
    assert len(names) == 2
    assert all(len(name) <= 32 for name in names)
    ask(git_repo, "reap")
    assert len(names & set(clusters(state, "k3d"))) == 1


def test_k3d_nodes_are_labelled_at_their_creation(git_repo: Path, state: State) -> None:
    create(git_repo, "k3d", "mine", "--agents", "1")
    owner = ask(git_repo, "status")["owner"]
    nodes = state.read()["containers"].values()
    assert {node["labels"]["corral.owner"] for node in nodes} == {owner}
    call = state.calls("k3d", "cluster", "create")[0]
    assert call[3:5] == ["--runtime-label", f"corral.owner={owner}@all"]
    assert [r["name"] for r in rows(git_repo)] == ["mine"]
    assert [r for r in ask(git_repo, "status")["owned"] if r["kind"] == "container"] == []


@EVERY_TOOL
def test_a_cluster_that_was_there_before_is_never_ours(
    git_repo: Path, state: State, tool: str
) -> None:
    name = {"kind": ["--name", "dev"], "k3d": ["dev"], "minikube": ["-p", "dev"]}[tool]
    by_hand(*CREATE[tool], *name)
    said = create(git_repo, tool, *name, check=None)
    assert "was there before" in said.err
    assert every_row(git_repo) == []
    ask(git_repo, "reap")
    ask(git_repo, "down", "--yes")
    assert set(clusters(state, tool)) == {"dev"}


@EVERY_TOOL
def test_a_cluster_of_the_users_is_never_listed(git_repo: Path, state: State, tool: str) -> None:
    create(git_repo, tool)
    name = {"kind": ["--name", "my-prod"], "k3d": ["my-prod"], "minikube": ["-p", "my-prod"]}[tool]
    by_hand(*CREATE[tool], *name)
    said = corral(git_repo, "status", "--all", "--explain")
    assert "my-prod" not in said.out
    assert "my-prod" not in corral(git_repo, "cleanup", "--json").out
    ask(git_repo, "down", "--yes")
    assert set(clusters(state, tool)) == {"my-prod"}


@EVERY_TOOL
def test_secrets_of_the_tools_are_never_shown_or_kept(
    git_repo: Path, state: State, state_dir: Path, tool: str
) -> None:
    create(git_repo, tool)
    outputs = []
    for where in ("list", "delete"):
        for fault in ("fail", "garble", ""):
            state.set_fault(f"{tool} {where}", fault)
            for words in (
                ("status", "--explain"),
                ("status", "--all", "--json"),
                ("doctor",),
                ("doctor", "--json"),
                ("reap", "--json"),
                ("cleanup", "--json"),
                ("events",),
            ):
                said = corral(git_repo, *words, check=None)
                outputs.append(said.out + said.err)
    said = create(git_repo, tool, check=None)
    assert TOKEN not in "".join(outputs) + said.out + said.err
    content = (state_dir / "registry.sqlite3").read_bytes()
    content += b"".join(p.read_bytes() for p in state_dir.glob("registry.sqlite3-wal"))
    assert TOKEN.encode() not in content


@EVERY_TOOL
def test_a_failed_look_is_told_in_the_tools_own_words(
    git_repo: Path, state: State, tool: str
) -> None:
    create(git_repo, tool)
    state.set_fault(f"{tool} list", "fail")
    found = backend(git_repo, tool)
    assert found["state"] == "failed"
    assert "Cannot connect to the Docker daemon" in found["detail"]
    said = corral(git_repo, "reap", "--json", check=3)
    assert said.data["removed"] == []
    assert clusters(state, tool)
    state.set_fault(f"{tool} list", "")
    assert len(ask(git_repo, "reap")["removed"]) == 1


@EVERY_TOOL
def test_output_of_a_future_version_is_a_failed_look(
    git_repo: Path, state: State, tool: str
) -> None:
    create(git_repo, tool)
    state.set_fault(f"{tool} list", "garble")
    found = backend(git_repo, tool)
    assert found["state"] == "failed"
    assert "not understood" in found["detail"]


def test_a_tool_that_hangs_is_a_failed_look(git_repo: Path, state: State) -> None:
    create(git_repo, "kind")
    state.set_fault("kind list", "hang")
    began = time.monotonic()
    said = corral(git_repo, "status", "--json", check=3)
    assert time.monotonic() - began < 9
    (kind,) = [b for b in said.data["backends"] if b["name"] == "kind"]
    assert kind["state"] == "failed"
    assert "did not end within" in kind["detail"]


def test_tools_that_are_not_installed_are_absent(git_repo: Path, engine: StandInEngine) -> None:
    del engine
    for tool in CREATE:
        found = backend(git_repo, tool, check=0)
        assert found["state"] == "absent"
        assert "not installed" in found["detail"]


def test_nothing_is_asked_that_cannot_concern_corral(git_repo: Path, state: State) -> None:
    by_hand("kind", "create", "cluster", "--name", "my-prod")
    before = len(state.read()["calls"])
    seen = ask(git_repo, "status")
    assert len(state.read()["calls"]) == before, "a question costs a process"
    (kind,) = [b for b in seen["backends"] if b["name"] == "kind"]
    assert kind["state"] == "ok"


@EVERY_TOOL
def test_tool_and_engine_that_disagree_are_unknown_with_both_facts(
    git_repo: Path, state: State, tool: str
) -> None:
    create(git_repo, tool)
    state.set_fault(f"{tool} list", "empty")
    (row,) = rows(git_repo, "unknown")
    assert "has its nodes" in row["reason"]
    assert f"{tool} does not list it" in row["reason"]
    state.set_fault(f"{tool} list", "")
    with state.edit() as content:
        content["containers"].clear()
    (row,) = rows(git_repo, "unknown")
    assert f"{tool} lists it" in row["reason"]
    assert "has no node of it" in row["reason"]
    assert ask(git_repo, "reap")["removed"] == []
    assert clusters(state, tool)


def test_what_minikube_swallows_is_seen_in_the_engine(git_repo: Path, state: State) -> None:
    create(git_repo, "minikube")
    state.set_fault("minikube delete", "profile only")
    report = corral(git_repo, "reap", "--json", check=1).data
    (remaining,) = report["remaining"]
    assert "still has its nodes" in remaining["reason"]
    assert report["removed"] == []


@EVERY_TOOL
def test_without_the_tool_its_nodes_are_removed_by_id(
    git_repo: Path, state: State, engine: StandInEngine, tool: str
) -> None:
    create(git_repo, tool)
    stranger = engine.container("web")
    network = engine.network("kind")
    shutil.rmtree(os.path.join(state.directory, "bin"))
    (row,) = rows(git_repo)
    assert row["verdict"] == "KEEP"
    report = ask(git_repo, "reap")
    assert [r["kind"] for r in report["removed"]] == ["cluster"]
    assert set(state.read()["containers"]) == {stranger}
    assert set(state.read()["networks"]) == {network}


@EVERY_TOOL
def test_a_cluster_that_is_named_after_a_session_is_that_sessions(
    git_repo: Path, state: State, tool: str
) -> None:
    corral(git_repo, "session", "start", "--session", "s1")
    words = {"kind": "--name {}", "k3d": "{}", "minikube": "-p {}"}[tool]
    for name in ("corral-s1", "corral-s12", "corral-other"):
        by_hand(*CREATE[tool], *words.format(name).split())
    (mine,) = rows(git_repo)
    assert (mine["name"], mine["session"]) == ("corral-s1", "s1")
    unknown = {r["name"]: r["reason"] for r in rows(git_repo, "unknown")}
    assert set(unknown) == {"corral-s12", "corral-other"}
    assert "corral reap --session" in unknown["corral-other"]
    ask(git_repo, "session", "end", "--session", "s1")
    assert set(clusters(state, tool)) == {"corral-s12", "corral-other"}
    ask(git_repo, "reap", "--session", "other")
    assert set(clusters(state, tool)) == {"corral-s12"}


def test_what_is_made_by_hand_under_the_claimed_name_is_the_environments(
    git_repo: Path, state: State
) -> None:
    create(git_repo, "kind")
    ((name, _),) = clusters(state, "kind").items()
    by_hand("kind", "delete", "cluster", "--name", name)
    by_hand("kind", "create", "cluster", "--name", name)
    assert ask(git_repo, "reap")["removed"] == []
    assert clusters(state, "kind")
    report = ask(git_repo, "down", "--yes")
    assert f"kind/{name}" in [r["id"] for r in report["removed"]]
    assert clusters(state, "kind") == {}


def test_a_chosen_name_that_was_made_again_by_hand_is_nobodys(git_repo: Path, state: State) -> None:
    create(git_repo, "kind", "--name", "dev")
    by_hand("kind", "delete", "cluster", "--name", "dev")
    by_hand("kind", "create", "cluster", "--name", "dev")
    assert every_row(git_repo) == []
    ask(git_repo, "reap")
    ask(git_repo, "down", "--yes")
    assert set(clusters(state, "kind")) == {"dev"}


def test_another_environments_name_is_refused_and_never_inherited(
    git_repo: Path, worktree: Callable[[str], Path], state: State
) -> None:
    other = worktree("other")
    create(git_repo, "kind")
    ((first, _),) = clusters(state, "kind").items()
    said = create(other, "kind", "--name", first, check=4)
    assert "claimed by the environment" in said.err
    create(other, "kind", env={"KIND_CLUSTER_NAME": first})
    assert len(clusters(state, "kind")) == 2


def test_a_name_from_the_users_own_variable_is_kept(git_repo: Path, state: State) -> None:
    create(git_repo, "kind", env={"KIND_CLUSTER_NAME": "chosen"})
    assert set(clusters(state, "kind")) == {"chosen"}
    assert [r["name"] for r in rows(git_repo)] == ["chosen"]


def test_a_kubeconfig_that_the_user_names_is_used_at_the_end_too(
    git_repo: Path, state: State
) -> None:
    create(git_repo, "kind", "--kubeconfig", "own.kube")
    ask(git_repo, "reap")
    assert state.read()["kubeconfigs"] == [str(git_repo / "own.kube")]


def test_where_nobody_can_tell_whether_it_is_there_nothing_is_created(
    git_repo: Path, state: State
) -> None:
    state.set_fault("kind list", "fail")
    said = create(git_repo, "kind", check=3)
    assert "Cannot connect to the Docker daemon" in said.err
    assert state.calls("kind", "create") == []
    assert clusters(state, "kind") == {}


def test_a_creation_that_failed_leaves_no_record(git_repo: Path, state: State) -> None:
    state.set_fault("kind create", "fail")
    assert create(git_repo, "kind", check=1).status == 1
    assert every_row(git_repo) == []
    state.set_fault("kind create", "")
    create(git_repo, "kind")
    assert len(rows(git_repo)) == 1


def test_an_option_that_is_not_known_is_passed_on_and_said(git_repo: Path, state: State) -> None:
    said = create(git_repo, "kind", "--brand-new", "x")
    assert "--brand-new of kind is not known" in said.err
    assert set(clusters(state, "kind")) == {"kind"}
    assert every_row(git_repo) == []
    corral(git_repo, "adopt", "cluster", "kind")
    assert [r["name"] for r in rows(git_repo)] == ["kind"]


def test_what_is_being_created_is_left_and_taken_once_its_maker_is_dead(
    git_repo: Path, state: State, track: Tracker
) -> None:
    state.set_fault("kind create", "hang")
    env = {**os.environ, "CORRAL_SESSION": "job"}
    maker = track.spawn(
        [*COMMAND, "run", "--", *CREATE["kind"]], cwd=git_repo, env=env, stdout=-1, stderr=-1
    )
    eventually(lambda: clusters(state, "kind"))
    (row,) = rows(git_repo)
    assert row["reason"] == "being created"
    report = ask(git_repo, "cleanup", "--yes", env=NO_GRACE)
    assert report["removed"] == []
    assert clusters(state, "kind")
    maker.kill()
    maker.wait()
    report = ask(git_repo, "reap", "--session", "job")
    assert "cluster" in [r["kind"] for r in report["removed"]]
    assert clusters(state, "kind") == {}


def test_a_detached_creation_is_owned_as_well(git_repo: Path, state: State) -> None:
    corral(git_repo, "run", "--detach", "--name", "up", "--", *CREATE["kind"])
    eventually(lambda: clusters(state, "kind"))
    eventually(lambda: [r for r in rows(git_repo) if r["reason"] != "being created"])
    assert "cluster" in [r["kind"] for r in ask(git_repo, "reap")["removed"]]
    assert clusters(state, "kind") == {}


def test_a_crashed_workers_cluster_is_cleaned_up(
    git_repo: Path, state: State, track: Tracker
) -> None:
    worker = track.spawn(["sleep", "600"])
    corral(git_repo, "session", "start", "--session", "agent", "--anchor", str(worker.pid))
    create(git_repo, "k3d", env={"CORRAL_SESSION": "agent"})
    worker.kill()
    worker.wait()
    assert ask(git_repo, "cleanup", "--yes")["removed"] == [], "within the grace"
    (orphan,) = rows(git_repo, "orphans", env=NO_GRACE)
    report = ask(git_repo, "cleanup", "--yes", "--backend", "k3d", env=NO_GRACE)
    assert [r["id"] for r in report["removed"]] == [orphan["id"]]
    assert clusters(state, "k3d") == {}


def test_a_reaper_that_is_killed_midway_is_finished_by_the_next(
    git_repo: Path, state: State, track: Tracker
) -> None:
    create(git_repo, "kind")
    state.set_fault("kind delete", "hang")
    reaper = track.spawn([*COMMAND, "reap"], cwd=git_repo, stdout=-1, stderr=-1)
    eventually(lambda: state.calls("kind", "delete"))
    reaper.kill()
    reaper.wait()
    state.set_fault("kind delete", "")
    assert len(ask(git_repo, "reap")["removed"]) == 1
    assert clusters(state, "kind") == {}


def test_a_sessions_end_does_not_wait_for_a_slow_cluster(
    git_repo: Path, state: State, private_root: Path, track: Tracker
) -> None:
    agent = Agent(track, private_root, "s-slow", git_repo)
    agent.start()
    agent.run(*COMMAND, "run", "--", *CREATE["minikube"])
    assert clusters(state, "minikube")
    state.set_fault("minikube delete", "slow")
    began = time.monotonic()
    agent.end()
    assert time.monotonic() - began < 1.0
    assert clusters(state, "minikube"), "the hook only handed over"
    eventually(lambda: not clusters(state, "minikube"), 30)


def test_a_recorded_cluster_is_found_where_it_was_made(
    git_repo: Path, state: State, private_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(git_repo, "kind")
    with StandInEngine(private_root / "another") as another:
        monkeypatch.setenv("DOCKER_HOST", another.host)
        (row,) = rows(git_repo)
        assert row["backend"].startswith("kind:unix://")
        assert len(ask(git_repo, "reap")["removed"]) == 1
    assert clusters(state, "kind") == {}


def test_two_names_of_one_socket_are_one_place(
    git_repo: Path, state: State, engine: StandInEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(git_repo, "kind")
    link = engine.path.with_name("link")
    link.symlink_to(engine.path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{link}")
    assert [r["backend"] for r in every_row(git_repo)] == ["kind"]
    assert len(ask(git_repo, "reap")["removed"]) == 1
    assert clusters(state, "kind") == {}


def test_a_label_that_looks_like_an_option_is_no_clusters_name(
    git_repo: Path, state: State, engine: StandInEngine
) -> None:
    create(git_repo, "k3d")
    owner = ask(git_repo, "status")["owner"]
    engine.container("evil", k3d__cluster="--all", corral__owner=owner)
    by_hand("k3d", "cluster", "create", "my-prod")
    assert len(every_row(git_repo)) == 1
    ask(git_repo, "reap")
    assert set(clusters(state, "k3d")) == {"my-prod"}
    assert not [call for call in state.calls("k3d") if "--all" in call]


def test_an_engine_that_is_down_is_no_empty_engine(
    git_repo: Path, state: State, engine: StandInEngine
) -> None:
    assert backend(git_repo, "kind", check=0)["state"] == "ok"
    create(git_repo, "kind")
    state.set_fault("engine", "fail")
    assert backend(git_repo, "kind")["state"] == "failed"
    state.set_fault("engine", "")
    os.rename(engine.path, f"{engine.path}.away")
    found = backend(git_repo, "kind")
    assert found["state"] == "failed"
    assert "recorded cluster" in found["detail"]
    os.rename(f"{engine.path}.away", engine.path)
    assert len(ask(git_repo, "reap")["removed"]) == 1


def test_without_an_engine_and_without_a_record_a_tool_that_fails_is_absent(
    git_repo: Path, state: State, monkeypatch: pytest.MonkeyPatch, private_root: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{private_root}/nowhere")
    state.set_fault("kind list", "fail")
    found = backend(git_repo, "kind", check=0)
    assert found["state"] == "absent"
    assert "Cannot connect" in found["detail"]


def test_a_virtual_machine_of_minikube_needs_no_engine(git_repo: Path, state: State) -> None:
    create(git_repo, "minikube", "--driver", "kvm2")
    (row,) = rows(git_repo)
    assert row["identity"]["nodes"] == ""
    assert len(ask(git_repo, "reap")["removed"]) == 1
    assert clusters(state, "minikube") == {}


@EVERY_TOOL
def test_a_cluster_is_adopted_and_kept_by_its_name(git_repo: Path, state: State, tool: str) -> None:
    words = {"kind": ["--name", "old"], "k3d": ["old"], "minikube": ["-p", "old"]}[tool]
    by_hand(*CREATE[tool], *words)
    corral(git_repo, "adopt", "cluster", f"{tool}/old")
    corral(git_repo, "adopt", "cluster", f"{tool}/old", check=4)
    corral(git_repo, "adopt", "cluster", "no-such", check=2)
    corral(git_repo, "keep", f"cluster/{tool}/old")
    assert ask(git_repo, "reap")["removed"] == []
    assert [r["name"] for r in rows(git_repo, "kept")] == ["old"]
    corral(git_repo, "unkeep", f"cluster/{tool}/old")
    assert len(ask(git_repo, "reap")["removed"]) == 1
    assert clusters(state, tool) == {}


def test_a_k3d_cluster_that_asks_to_be_kept_is_kept(git_repo: Path, state: State) -> None:
    create(git_repo, "k3d", "mine", "--runtime-label", "corral.keep=true@all")
    assert ask(git_repo, "reap")["removed"] == []
    assert set(clusters(state, "k3d")) == {"mine"}


def test_doctor_and_cleanup_know_the_tools(git_repo: Path, state: State) -> None:
    names = {b["name"] for b in ask(git_repo, "doctor")["backends"]}
    assert names >= set(CREATE)
    for tool in CREATE:
        assert state.calls(tool), "the whole machine is asked about"
        assert ask(git_repo, "cleanup", "--yes", "--backend", tool)["removed"] == []


def test_a_workers_owner_mark_does_not_reach_a_node(git_repo: Path, state: State) -> None:
    create(git_repo, "kind")
    listed = json.dumps(state.read()["containers"])
    assert set(LABELS.values()) & set(listed.split('"'))
    assert "CORRAL_OWNER" not in listed


def test_an_interrupted_creation_leaves_a_cluster_that_is_owned(
    git_repo: Path, state: State, track: Tracker
) -> None:
    state.set_fault("k3d create", "hang")
    maker = track.spawn(
        [*COMMAND, "run", "--", *CREATE["k3d"]],
        cwd=git_repo,
        stdout=-1,
        stderr=-1,
        start_new_session=True,
    )
    eventually(lambda: clusters(state, "k3d"))
    os.killpg(maker.pid, signal.SIGINT)
    maker.wait(20)
    (row,) = rows(git_repo)
    assert row["verdict"] == "KEEP"
    assert len(ask(git_repo, "reap")["removed"]) == 1
