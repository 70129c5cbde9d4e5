"""Containers as a user has them: the command line, a real engine, and another worker's things."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

import corral as api
from support.command import COMMAND, ask, corral
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from corral.model.report import Plan
    from support.dockerd import Dockerd
    from support.podman import Podman
    from support.processes import Tracker

Rows = list[dict[str, Any]]


@pytest.fixture
def place(private_root: Path) -> Path:
    directory = private_root / "place"
    directory.mkdir()
    return directory


@pytest.fixture
def worker(docker: Dockerd, monkeypatch: pytest.MonkeyPatch) -> Dockerd:
    """The engine that every command of the test is led to."""
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    monkeypatch.setenv("DOCKER_CONFIG", str(docker.root / "cfg"))
    return docker


def session(name: str) -> dict[str, str | None]:
    return {"CORRAL_SESSION": name}


def begun(place: Path, name: str) -> str:
    """Start a session; the owner's id."""
    return str(ask(place, "session", "start", "--session", name)["owner"])


def names(rows: Rows, kind: str = "container") -> set[str]:
    return {row["name"] for row in rows if row["kind"] == kind}


def state_of(data: dict[str, Any], backend: str) -> str:
    return str(next(b["state"] for b in data["backends"] if b["name"] == backend))


def test_a_worker_s_containers_go_and_all_others_stay(place: Path, worker: Dockerd) -> None:
    begun(place, "one")
    begun(place, "two")
    for name in ("one", "two"):
        worker.container("--name", name, "--label", f"corral.session={name}")
    worker.container("--name", "my-prod")
    worker.docker("network", "create", "--label", "corral.session=one", "net")
    worker.docker("volume", "create", "--label", "corral.session=one", "data")
    data = ask(place, "reap", env=session("one"))
    assert names(data["removed"]) == {"one"}
    assert names(data["removed"], "network") == {"net"}
    assert names(data["left"], "volume") == {"data"}
    assert {worker.inspect(i)["Name"] for i in worker.ids()} == {"/two", "/my-prod"}
    assert worker.ids("volume") == {"data"}


def test_a_dry_run_changes_nothing(place: Path, worker: Dockerd) -> None:
    begun(place, "one")
    identifier = worker.container("--label", "corral.session=one")
    ask(place, "reap", "--dry-run", env=session("one"))
    assert worker.ids() == {identifier}


def test_what_corral_run_starts_is_labelled_and_reaped(place: Path, worker: Dockerd) -> None:
    owner = begun(place, "one")
    run = ("run", "--", "docker")
    corral(
        place, *run, "run", "--detach", "--name", "web", "box", "sleep", "600", env=session("one")
    )
    corral(place, *run, "network", "create", "net", env=session("one"))
    corral(place, *run, "volume", "create", "data", env=session("one"))
    assert worker.inspect("web")["Config"]["Labels"]["corral.owner"] == owner
    assert worker.inspect("--type", "volume", "data")["Labels"]["corral.owner"] == owner
    data = ask(place, "reap", env=session("one"))
    assert names(data["removed"]) == {"web"}
    assert names(data["removed"], "network") == {"net"}
    assert worker.ids() == set()


def test_an_engine_that_the_variables_no_longer_lead_to_is_still_looked_into(
    place: Path, worker: Dockerd
) -> None:
    begun(place, "one")
    start = ("run", "--", "docker", "run", "--detach", "--name", "web", "box", "sleep", "600")
    corral(place, *start, env=session("one"))
    data = ask(place, "reap", env={**session("one"), "DOCKER_HOST": None})
    assert names(data["removed"]) == {"web"}
    assert worker.ids() == set()


def test_with_the_engine_gone_what_it_holds_is_not_taken_for_gone(
    place: Path, worker: Dockerd
) -> None:
    """Recorded there, so a socket that is missing now is a failed look, and nothing is dropped."""
    begun(place, "one")
    start = ("run", "--", "docker", "run", "--detach", "--name", "web", "box", "sleep", "600")
    corral(place, *start, env=session("one"))
    aside = worker.socket.with_name("aside")
    worker.socket.rename(aside)
    try:
        said = corral(place, "reap", "--json", env=session("one"), check=3)
        assert said.document["result"] == "partial"
        assert "recorded is there" in said.document["problems"][0]["message"]
    finally:
        aside.rename(worker.socket)
    assert names(ask(place, "reap", env=session("one"))["removed"]) == {"web"}


def test_a_hung_engine_stops_nobody_else(place: Path, worker: Dockerd) -> None:
    begun(place, "one")
    worker.container("--name", "web", "--label", "corral.session=one")
    start = ("run", "--detach", "--name", "server", "--", "sleep", "600")
    ask(place, *start, env=session("one"))
    worker.signal(signal.SIGSTOP)
    try:
        said = corral(place, "reap", "--json", env=session("one"), check=3)
    finally:
        worker.signal(signal.SIGCONT)
    assert "server" in names(said.data["removed"], "process")
    (problem,) = said.document["problems"]
    assert "does not answer" in problem["message"]
    assert len(worker.ids()) == 1
    assert names(ask(place, "reap", env=session("one"))["removed"]) == {"web"}


def test_an_absent_engine_is_no_failure(place: Path) -> None:
    data = ask(place, "status", env={"DOCKER_HOST": f"unix://{place}/none"})
    assert state_of(data, "docker") == "absent"


def test_two_engines_each_give_up_their_own(
    place: Path, worker: Dockerd, second_docker: Dockerd
) -> None:
    begun(place, "one")
    start = ("run", "--", "docker")
    words = ("run", "--detach", "box", "sleep", "600")
    corral(place, *start, *words, env=session("one"))
    other = ("--host", second_docker.host)
    corral(place, *start, *other, *words, env=session("one"))
    assert (len(worker.ids()), len(second_docker.ids())) == (1, 1)
    second_docker.signal(signal.SIGSTOP)
    try:
        corral(place, "reap", env=session("one"), check=3)
    finally:
        second_docker.signal(signal.SIGCONT)
    assert (len(worker.ids()), len(second_docker.ids())) == (0, 1)
    corral(place, "reap", env=session("one"))
    assert second_docker.ids() == set()


def test_the_engine_is_shown_and_never_stopped(place: Path, worker: Dockerd) -> None:
    data = ask(place, "status")
    (engine,) = [row for row in data["shared"] if row["kind"] == "engine"]
    assert worker.host in engine["name"]
    assert (engine["verdict"], engine["state"]) == ("KEEP", "reachable")


def test_an_adopted_container_is_the_worker_s_until_it_is_gone(
    place: Path, worker: Dockerd
) -> None:
    begun(place, "one")
    identifier = worker.container("--name", "found")
    ask(place, "adopt", "container", "found", env=session("one"))
    rows = ask(place, "status", env=session("one"))["owned"]
    assert [row["id"] for row in rows if row["kind"] == "container"] == [identifier]
    corral(place, "adopt", "container", "found", env=session("one"), check=4)
    begun(place, "two")
    corral(place, "adopt", "container", identifier, env=session("two"), check=4)
    corral(place, "adopt", "container", "nothing", env=session("one"), check=2)
    assert names(ask(place, "reap", env=session("one"))["removed"]) == {"found"}


def test_what_is_to_be_kept_is_kept(place: Path, worker: Dockerd) -> None:
    begun(place, "one")
    label = ("--label", "corral.session=one")
    worker.container("--name", "labelled", *label, "--label", "corral.keep=true")
    worker.container("--name", "named", *label)
    corral(place, "keep", "named")
    data = ask(place, "reap", env=session("one"))
    assert names(data["removed"]) == set()
    assert names(ask(place, "status", env=session("one"))["kept"]) == {"labelled", "named"}
    corral(place, "unkeep", "named")
    assert names(ask(place, "reap", env=session("one"))["removed"]) == {"named"}


def orphaned(place: Path, track: Tracker, worker: Dockerd, count: int = 2) -> None:
    """Containers of a session whose anchor was killed, and whose grace is over."""
    anchor = track.spawn(["sleep", "600"])
    ask(place, "session", "start", "--session", "gone", "--anchor", str(anchor.pid))
    for number in range(count):
        worker.container("--name", f"web-{number}", "--label", "corral.session=gone")
    anchor.kill()
    anchor.wait()


def test_the_containers_of_a_worker_that_was_killed_are_orphans(
    place: Path, worker: Dockerd, track: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORRAL_KEEPER_GRACE", "0")
    orphaned(place, track, worker)
    worker.container("--name", "my-prod")
    eventually(lambda: names(ask(place, "status", "--all")["orphans"]) == {"web-0", "web-1"})
    data = ask(place, "cleanup", "--yes")
    assert names(data["removed"]) == {"web-0", "web-1"}
    assert [worker.inspect(i)["Name"] for i in worker.ids()] == ["/my-prod"]


def orphans_in_a_plan() -> Plan | None:
    plan = api.prepare_cleanup()
    return None if plan.empty else plan


def test_only_what_was_shown_is_removed(
    place: Path, worker: Dockerd, track: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between preview and approval one is replaced under its name, and one appears."""
    monkeypatch.setenv("CORRAL_KEEPER_GRACE", "0")
    monkeypatch.chdir(place)
    orphaned(place, track, worker)
    shown = eventually(orphans_in_a_plan)
    worker.docker("rm", "--force", "web-0")
    label = ("--label", "corral.session=gone")
    replaced = worker.container("--name", "web-0", *label)
    new = worker.container("--name", "web-2", *label)
    assert shown is not None
    report = api.cleanup(shown)
    assert {j.sighting.name for j in report.removed} == {"web-1"}
    assert worker.ids() == {replaced, new}


def test_a_reaper_that_is_killed_midway_is_followed_by_one_that_finishes(
    place: Path, worker: Dockerd, track: Tracker
) -> None:
    begun(place, "one")
    label = ("--label", "corral.session=one")
    for number in range(6):
        worker.container("--name", f"web-{number}", *label)
    variables = {**os.environ, "CORRAL_SESSION": "one"}
    first = track.spawn([*COMMAND, "reap"], cwd=place, env=variables)
    eventually(lambda: len(worker.ids()) < 6)
    first.kill()
    first.wait()
    data = ask(place, "reap", env=session("one"))
    assert data["remaining"] == []
    assert worker.ids() == set()
    assert names(ask(place, "reap", env=session("one"))["removed"]) == set()


@pytest.mark.usefixtures("worker")
def test_ready_means_that_this_worker_s_container_listens(place: Path) -> None:
    begun(place, "one")
    options = ("run", "--detach", "--name", "web", "--port", "web", "--wait-ready", "30", "--")
    publish = ("docker", "run", "--rm", "--publish", "127.0.0.1:{port}:80")
    serve = ("box", "httpd", "-f", "-p", "80")
    data = ask(place, *options, *publish, *serve, env=session("one"))
    assert data["ready"] is True
    rows = ask(place, "status", env=session("one"))
    assert len(names(rows["owned"])) == 1
    assert not any("docker-proxy" in row["name"] for row in rows["unknown"])


@pytest.mark.usefixtures("worker")
def test_a_container_in_the_machine_s_network_listens_by_itself(place: Path) -> None:
    begun(place, "one")
    options = ("run", "--detach", "--name", "web", "--port", "web", "--wait-ready", "30")
    command = ("docker", "run", "--rm", "--network", "host", "box", "httpd", "-f", "-p", "{port}")
    data = ask(place, *options, "--handoff", "release", "--", *command, env=session("one"))
    assert data["ready"] is True


def test_localstack_is_told_to_label_what_it_starts(place: Path, worker: Dockerd) -> None:
    owner = begun(place, "one")
    worker.docker("tag", "box", "localstack/localstack:3")
    image = ("localstack/localstack:3", "sleep", "600")
    start = ("run", "--", "docker", "run", "--detach", "--name", "localstack-main", *image)
    corral(place, *start, env=session("one"))
    (flags,) = [
        v for v in worker.inspect("localstack-main")["Config"]["Env"] if v.startswith("LAMBDA")
    ]
    _, _, options = flags.partition("=")
    # as LocalStack itself would start one, and one that it forgot to label
    worker.container("--name", "localstack-main-lambda-a-1", *options.split())
    worker.container("--name", "localstack-main-lambda-b-2")
    assert f"corral.owner={owner}" in options
    rows = ask(place, "status", env=session("one"))
    assert names(rows["owned"]) == {"localstack-main", "localstack-main-lambda-a-1"}
    assert names(rows["unknown"]) == {"localstack-main-lambda-b-2"}
    corral(place, "reap", env=session("one"))
    assert [worker.inspect(i)["Name"] for i in worker.ids()] == ["/localstack-main-lambda-b-2"]


def test_podman_s_containers_are_labelled_and_reaped(place: Path, podman: Podman) -> None:
    begun(place, "one")
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--network", "host")
    start = ("run", "--", "podman", "--remote", "--url", podman.host, "run", "--detach", *limits)
    corral(place, *start, "box", "sleep", "600", env=session("one"))
    assert len(podman.ids()) == 1
    data = ask(place, "reap", env=session("one"))
    assert len(names(data["removed"])) == 1
    assert podman.ids() == set()


def test_podman_is_looked_into_also_where_no_socket_leads_to_it(
    place: Path, podman: Podman
) -> None:
    """The options lead to a storage of its own, and the program itself serves it for a look."""
    begun(place, "one")
    limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000", "--network", "host")
    start = ("run", "--", *podman.command, "run", "--detach", *limits, "box", "sleep", "600")
    corral(place, *start, env=session("one"))
    assert len(podman.ids()) == 1
    rows = ask(place, "status", env=session("one"))
    assert len(names(rows["owned"])) == 1
    corral(place, "reap", "--json", env={**session("one"), "PATH": "/nowhere"}, check=3)
    data = ask(place, "reap", env=session("one"))
    assert len(names(data["removed"])) == 1
    assert podman.ids() == set()
