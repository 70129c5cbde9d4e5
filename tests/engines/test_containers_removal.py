"""Taking things down in a real Docker Engine and a real Podman."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corral.backends.containers import ContainerBackend
from corral.backends.engine.endpoints import Endpoint
from corral.errors import EnumerationError
from corral.model.resource import Kind
from support.engine_views import OWNER, REAP_DATA, remove, seen, targets, view
from support.waiting import eventually

if TYPE_CHECKING:
    from support.dockerd import Dockerd
    from support.podman import Podman

MINE = ("--label", f"corral.owner={OWNER}")
# A first process that ignores TERM, and one that says goodbye into /data.
STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
POLITE = ("sh", "-c", "trap 'echo bye > /data/bye; exit 0' TERM; while :; do sleep 0.05; done")


def backend_of(engine: Dockerd | Podman, name: str = "docker") -> ContainerBackend:
    return ContainerBackend(Endpoint(name, engine.host), dict(os.environ))


def results(backend: ContainerBackend, kind: Kind = Kind.CONTAINER) -> dict[str, str]:
    outcomes = remove(backend, targets(backend, view(), kind), view())
    return {name: outcome.result for name, outcome in outcomes.items()}


def test_containers_go_in_every_state(docker: Dockerd) -> None:
    docker.container("--name", "running", *MINE)
    docker.docker("pause", docker.container("--name", "paused", *MINE))
    docker.container("--name", "exited", *MINE, command=("true",))
    docker.docker("create", "--name", "created", *MINE, "box", "true")
    docker.container("--name", "again", "--restart", "always", *MINE, command=("false",))
    docker.container("--name", "stubborn", *MINE, command=STUBBORN)
    other = docker.container("--name", "other")
    eventually(lambda: docker.inspect("again")["RestartCount"] > 0)
    names = ("running", "paused", "exited", "created", "again", "stubborn")
    before = time.monotonic()
    assert results(backend_of(docker)) == dict.fromkeys(names, "removed")
    assert time.monotonic() - before < 5, "what holds no data is not waited for"
    assert docker.ids() == {other}


def test_anonymous_volumes_go_with_their_container_and_named_ones_stay(docker: Dockerd) -> None:
    docker.container("--volume", "/anonymous", "--volume", "named:/named", *MINE)
    assert len(docker.ids("volume")) == 2
    assert list(results(backend_of(docker)).values()) == ["removed"]
    assert docker.ids("volume") == {"named"}


def test_an_anonymous_volume_that_two_containers_shared_goes_with_the_last(
    docker: Dockerd,
) -> None:
    docker.container("--name", "first", "--volume", "/shared", *MINE)
    docker.container("--name", "second", "--volumes-from", "first", *MINE)
    assert set(results(backend_of(docker)).values()) == {"removed"}
    assert docker.ids("volume") == set()


def test_an_anonymous_volume_that_somebody_else_uses_stays(docker: Dockerd) -> None:
    docker.container("--name", "first", "--volume", "/shared", *MINE)
    docker.container("--name", "theirs", "--volumes-from", "first")
    assert results(backend_of(docker)) == {"first": "removed"}
    assert len(docker.ids("volume")) == 1


def test_a_volume_that_was_named_like_an_anonymous_one_is_not_taken(docker: Dockerd) -> None:
    name = "ab" * 32
    docker.docker("volume", "create", name)
    docker.container("--volume", f"{name}:/data", *MINE)
    assert list(results(backend_of(docker)).values()) == ["removed"]
    assert docker.ids("volume") == {name}


def test_what_holds_data_is_told_before_it_is_ended(docker: Dockerd) -> None:
    docker.container("--name", "db", "--volume", "data:/data", *MINE, command=POLITE)
    assert results(backend_of(docker)) == {"db": "removed"}
    said = docker.docker("run", "--rm", "--volume", "data:/data", "box", "cat", "/data/bye")
    assert said == "bye"


def test_what_holds_data_in_a_directory_and_is_paused_is_told_too(docker: Dockerd) -> None:
    data = docker.root / "bound"
    data.mkdir()
    bound = ("--volume", f"{data}:/data")
    identifier = docker.container("--name", "db", *bound, *MINE, command=POLITE)
    docker.docker("pause", identifier)
    assert results(backend_of(docker)) == {"db": "removed"}
    assert (data / "bye").read_text() == "bye\n"


def test_what_holds_data_and_ignores_the_signal_is_forced_after_its_time(docker: Dockerd) -> None:
    docker.container("--name", "db", "--volume", "data:/data", *MINE, command=STUBBORN)
    docker.container("--name", "quick", *MINE)
    backend, before = backend_of(docker), time.monotonic()
    outcomes = remove(backend, targets(backend, view(), Kind.CONTAINER), view(), gentle=2.0)
    assert {o.result for o in outcomes.values()} == {"removed"}
    assert 2 <= time.monotonic() - before < 8


def test_what_is_only_to_be_stopped_stays(docker: Dockerd) -> None:
    identifier = docker.container("--name", "db", *MINE)
    docker.container("--name", "ended", *MINE, command=("true",))
    eventually(lambda: docker.inspect("ended")["State"]["Status"] == "exited")
    backend = backend_of(docker)
    stop = [t._replace(stop_only=True) for t in targets(backend, view(), Kind.CONTAINER)]
    outcomes = remove(backend, stop, view(), gentle=1.0)
    assert {o.result for o in outcomes.values()} == {"left"}
    assert all("stopped" in o.reason for o in outcomes.values())
    assert docker.inspect(identifier)["State"]["Status"] == "exited"


def test_what_went_in_the_meantime_is_already_gone(docker: Dockerd) -> None:
    docker.container("--name", "web", *MINE)
    docker.docker("network", "create", *MINE, "net")
    docker.docker("volume", "create", *MINE, "data")
    backend, around = backend_of(docker), view()
    for kind, undo in (
        (Kind.CONTAINER, ("rm", "--force", "web")),
        (Kind.NETWORK, ("network", "rm", "net")),
        (Kind.VOLUME, ("volume", "rm", "data")),
    ):
        found = targets(backend, around, kind, REAP_DATA)
        docker.docker(*undo)
        assert [o.result for o in remove(backend, found, around).values()] == ["already_gone"]


def test_a_container_that_took_over_the_name_is_not_touched(docker: Dockerd) -> None:
    docker.container("--name", "web", *MINE)
    backend = backend_of(docker)
    approved = targets(backend, view(), Kind.CONTAINER)
    docker.docker("rm", "--force", "web")
    replacement = docker.container("--name", "web", *MINE)
    assert remove(backend, approved, view())["web"].result == "already_gone"
    assert docker.ids() == {replacement}


def test_a_network_and_a_volume_that_took_over_the_name_are_not_touched(docker: Dockerd) -> None:
    docker.docker("network", "create", *MINE, "net")
    docker.docker("volume", "create", *MINE, "data")
    backend = backend_of(docker)
    network = targets(backend, view(), Kind.NETWORK)
    volume = targets(backend, view(), Kind.VOLUME, REAP_DATA)
    docker.docker("network", "rm", "net")
    docker.docker("volume", "rm", "data")
    docker.docker("network", "create", *MINE, "net")
    docker.docker("volume", "create", *MINE, "data")
    assert remove(backend, network, view())["net"].result == "already_gone"
    assert remove(backend, volume, view())["data"].result == "already_gone"
    assert set(seen(backend, view())) == {"net", "data"}


def test_what_must_be_left_now_is_left(docker: Dockerd) -> None:
    identifier = docker.container("--name", "web", *MINE)
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.CONTAINER)
    outcome = remove(backend, found, view(), confirm=lambda _: "its owner came back")["web"]
    assert (outcome.result, outcome.reason) == ("left", "its owner came back")
    assert docker.ids() == {identifier}


def test_an_owner_that_comes_back_while_a_container_stops_keeps_it(docker: Dockerd) -> None:
    docker.container("--name", "db", "--volume", "data:/data", *MINE)
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.CONTAINER)
    answers = iter(["", "its owner came back"])
    outcome = remove(backend, found, view(), confirm=lambda _: next(answers), gentle=1.0)["db"]
    assert outcome.result == "left"
    assert len(docker.ids()) == 1


def test_networks_go_after_their_containers_and_busy_ones_are_reported(docker: Dockerd) -> None:
    docker.docker("network", "create", *MINE, "free")
    docker.docker("network", "create", *MINE, "busy")
    docker.container("--network", "free", *MINE)
    theirs = docker.container("--network", "busy")
    backend = backend_of(docker)
    assert set(results(backend).values()) == {"removed"}
    outcomes = remove(backend, targets(backend, view(), Kind.NETWORK), view(), seconds=1.0)
    assert outcomes["free"].result == "removed"
    assert outcomes["busy"].result == "remaining"
    assert "active endpoints" in outcomes["busy"].reason
    assert docker.ids() == {theirs}, "nobody is cut off"


def test_a_network_that_frees_up_in_time_is_removed(docker: Dockerd) -> None:
    docker.docker("network", "create", *MINE, "busy")
    theirs = docker.container("--network", "busy")
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.NETWORK)
    freeing = threading.Timer(0.3, docker.docker, ("rm", "--force", theirs))
    freeing.start()
    assert remove(backend, found, view())["busy"].result == "removed"
    freeing.join()


def test_volumes_go_only_unused(docker: Dockerd) -> None:
    docker.docker("volume", "create", *MINE, "free")
    docker.docker("volume", "create", *MINE, "busy")
    docker.container("--volume", "busy:/data")
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.VOLUME, REAP_DATA)
    outcomes = remove(backend, found, view(), seconds=0.5)
    assert (outcomes["free"].result, outcomes["busy"].result) == ("removed", "remaining")
    assert "in use" in outcomes["busy"].reason
    assert docker.ids("volume") == {"busy"}


def test_two_removers_at_once_both_end_well(docker: Dockerd) -> None:
    for number in range(6):
        docker.container("--name", f"web-{number}", *MINE)
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.CONTAINER)
    said: list[set[str]] = []
    others = threading.Thread(
        target=lambda: said.append({o.result for o in remove(backend, found, view()).values()})
    )
    others.start()
    said.append({o.result for o in remove(backend, found, view()).values()})
    others.join()
    assert set().union(*said) <= {"removed", "already_gone"}
    assert docker.ids() == set()


def test_another_daemon_at_the_same_place_is_a_failed_look(
    docker: Dockerd, second_docker: Dockerd
) -> None:
    docker.container("--name", "web", *MINE)
    found = targets(backend_of(docker), view(), Kind.CONTAINER)
    with pytest.raises(EnumerationError, match="another engine"):
        remove(backend_of(second_docker), found, view())
    assert len(docker.ids()) == 1


def test_a_daemon_that_stops_answering_midway_removes_nothing_more(docker: Dockerd) -> None:
    docker.container("--name", "web", *MINE)
    backend = backend_of(docker)
    found = targets(backend, view(), Kind.CONTAINER)
    docker.signal(signal.SIGSTOP)
    try:
        with pytest.raises(EnumerationError, match="does not answer"):
            remove(backend, found, view(), seconds=0.5)
    finally:
        docker.signal(signal.SIGCONT)
    assert len(docker.ids()) == 1


def test_a_removal_that_was_killed_midway_is_finished_by_the_next(docker: Dockerd) -> None:
    for number in range(4):
        docker.container("--name", f"web-{number}", *MINE)
    one = subprocess.Popen(
        ["docker", "rm", "--force", *(f"web-{n}" for n in range(4))],
        env=docker.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    eventually(lambda: len(docker.ids()) < 4)
    one.kill()
    one.wait()
    backend = backend_of(docker)
    assert set(results(backend).values()) <= {"removed", "already_gone"}
    assert docker.ids() == set()


def test_twenty_stubborn_and_polite_containers_go_together(docker: Dockerd) -> None:
    for number in range(20):
        docker.container(
            "--name", f"c{number}", *MINE, command=STUBBORN if number % 2 else ("sleep", "600")
        )
    before = time.monotonic()
    assert set(results(backend_of(docker)).values()) == {"removed"}
    assert time.monotonic() - before < 15
    assert docker.ids() == set()


def test_podman_s_things_go_too(podman: Podman) -> None:
    podman.container("--name", "plain", *MINE, "--volume", "/anonymous", command=STUBBORN)
    podman.container("--name", "db", *MINE, "--volume", "data:/data", command=POLITE)
    podman.podman("create", "--name", "created", *MINE, "box", "true")
    podman.podman("pause", podman.container("--name", "paused", *MINE))
    other = podman.container("--name", "other")
    podman.podman("network", "create", *MINE, "net")
    podman.podman("volume", "create", *MINE, "mine")
    backend = backend_of(podman, "podman")
    assert results(backend) == dict.fromkeys(("plain", "db", "created", "paused"), "removed")
    assert results(backend, Kind.NETWORK) == {"net": "removed"}
    found = targets(backend, view(), Kind.VOLUME, REAP_DATA)
    assert remove(backend, found, view())["mine"].result == "removed"
    assert podman.ids() == {other}
    assert podman.podman("volume", "ls", "--quiet").split() == ["data"]
    bye = podman.podman("volume", "inspect", "--format", "{{.Mountpoint}}", "data") + "/bye"
    assert Path(bye).read_text() == "bye\n"
