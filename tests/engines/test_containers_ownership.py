"""Whose things are, on a real Docker Engine and a real Podman."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest

from corral.backends.containers import ContainerBackend, container_backends
from corral.backends.engine.endpoints import Endpoint
from corral.errors import EnumerationError
from corral.model.record import Record, RecordState
from corral.model.resource import BackendState, Kind, Proof, Verdict
from support.engine_views import OWNER, SESSION, judged, seen, view

if TYPE_CHECKING:
    from pathlib import Path

    from corral.model.resource import Judgement
    from support.dockerd import Dockerd
    from support.podman import Podman

MINE = ("--label", f"corral.owner={OWNER}")


def backend_of(engine: Dockerd | Podman, name: str = "docker") -> ContainerBackend:
    return ContainerBackend(Endpoint(name, engine.host), dict(os.environ))


def verdicts(judgements: list[Judgement]) -> dict[str, Verdict]:
    return {j.sighting.name: j.verdict for j in judgements if not j.sighting.shared}


def test_only_exact_labels_own(docker: Dockerd) -> None:
    docker.container("--name", "mine", *MINE)
    docker.container("--name", "session", "--label", f"corral.session={SESSION}")
    docker.container("--name", "prefix", "--label", f"corral.owner={OWNER}1")
    docker.container("--name", "empty", "--label", "corral.owner=", "--label", "corral.session")
    docker.container("--name", "lookalike", "--label", f"note=x,corral.owner={OWNER}")
    docker.container("--name", "my-prod")
    docker.docker("create", "--name", "only-created", *MINE, "box", "true")
    assert verdicts(judged(backend_of(docker), view())) == {
        "mine": Verdict.REAP,
        "session": Verdict.REAP,
        "only-created": Verdict.REAP,
        "prefix": Verdict.UNKNOWN,  # an owner that nobody knows
    }


def test_labels_of_images_own_nothing(docker: Dockerd) -> None:
    first = docker.container(*MINE)
    docker.docker("commit", first, "committed")
    docker.docker("rm", "--force", first)
    build = f"FROM box\nLABEL corral.owner={OWNER}\n"
    docker.run("build", "--tag", "built", "-", given=build.encode())
    for image in ("committed", "built"):
        docker.docker("run", "--detach", "--name", image, image, "sleep", "600")
    docker.docker("run", "--detach", "--name", "both", *MINE, "built", "sleep", "600")
    override = ("--label", f"corral.session={SESSION}")
    docker.docker("run", "--detach", "--name", "own", *override, "built", "sleep", "600")
    assert verdicts(judged(backend_of(docker), view())) == {
        "committed": Verdict.UNKNOWN,
        "built": Verdict.UNKNOWN,
        "both": Verdict.UNKNOWN,  # nobody can tell that the label was given as well
        "own": Verdict.REAP,
    }


def test_with_its_image_gone_a_stopped_container_s_label_proves_nothing(docker: Dockerd) -> None:
    docker.run("build", "--tag", "lost", "-", given=b"FROM box\nLABEL a=b\n")
    docker.docker("create", "--name", "left", *MINE, "lost", "true")
    docker.docker("image", "rm", "--force", "lost")
    (left,) = (j for j in judged(backend_of(docker), view()) if not j.sighting.shared)
    assert (left.verdict, left.code) == (Verdict.UNKNOWN, "doubt")


def test_networks_volumes_and_the_engine_are_seen(docker: Dockerd) -> None:
    docker.docker("network", "create", *MINE, "net")
    docker.docker("volume", "create", *MINE, "data")
    docker.docker("volume", "create", "other")
    observation = backend_of(docker).observe(view())
    assert observation.state is BackendState.OK
    assert {(s.kind, s.name, s.data) for s in observation.sightings if not s.shared} == {
        (Kind.NETWORK, "net", False),
        (Kind.VOLUME, "data", True),
    }
    (engine,) = [s for s in observation.sightings if s.shared]
    assert engine.kind is Kind.ENGINE
    assert docker.host in engine.name


def test_a_volume_that_is_written_to_stays_the_same_and_a_remade_one_does_not(
    docker: Dockerd,
) -> None:
    backend = backend_of(docker)
    docker.docker("volume", "create", *MINE, "data")
    first = seen(backend, view())["data"]
    time.sleep(1.1)  # Docker 20.10 counts a volume's time in whole seconds
    docker.docker("run", "--rm", "--volume", "data:/d", "box", "touch", "/d/file")
    assert seen(backend, view())["data"].key == first.key
    docker.docker("volume", "rm", "data")
    docker.docker("volume", "create", *MINE, "data")
    assert seen(backend, view())["data"].key != first.key


def test_keep_is_honoured(docker: Dockerd) -> None:
    docker.container("--name", "kept", *MINE, "--label", "corral.keep=true")
    named = docker.container("--name", "named", *MINE)
    around = view(kept=frozenset({("container", named)}))
    assert set(verdicts(judged(backend_of(docker), around)).values()) == {Verdict.KEEP}


def test_a_stopped_daemon_is_a_failed_look_within_its_time(docker: Dockerd) -> None:
    docker.container(*MINE)
    docker.signal(signal.SIGSTOP)
    try:
        before = time.monotonic()
        with pytest.raises(EnumerationError, match="does not answer"):
            backend_of(docker).observe(view())
        assert time.monotonic() - before < 5
    finally:
        docker.signal(signal.SIGCONT)


def adopted(identity: tuple[tuple[str, str | int], ...], place: str) -> Record:
    return Record(
        "rec-1", Kind.CONTAINER, "docker", "adopted", "db", OWNER, SESSION, None,
        RecordState.LIVE, identity, None, 0.0, f'{{"place": "{place}"}}',
    )  # fmt: skip


def test_a_missing_engine_is_absent_unless_something_is_recorded_there(tmp_path: Path) -> None:
    place = f"unix://{tmp_path}/none"
    (backend, *_) = container_backends({"DOCKER_HOST": place}, str(tmp_path))
    assert backend.observe(view()).state is BackendState.ABSENT
    assert backend.look_up(view(), Kind.CONTAINER, "x") is None
    recorded = view(records=(adopted((("id", "a"), ("daemon", "d")), place),))
    with pytest.raises(EnumerationError, match="recorded"):
        backend.observe(recorded)


def test_a_daemon_that_died_is_a_failed_look_where_a_project_is_claimed(tmp_path: Path) -> None:
    """Compose leaves no record, so nobody can say that nothing is there."""
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "s"))
    backend = ContainerBackend(Endpoint("docker", f"unix://{tmp_path}/s"), {})
    assert backend.observe(view()).state is BackendState.ABSENT
    with pytest.raises(EnumerationError, match="may be there"):
        backend.observe(view(project="p"))


def test_a_socket_without_permission_is_absent_and_says_so(docker: Dockerd) -> None:
    backend, around = backend_of(docker), view()
    docker.root.chmod(0o755)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setuid(65534)
        observation = backend.observe(around)
        os.write(write, f"{observation.state.value} {observation.detail}".encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    docker.root.chmod(0o700)
    with os.fdopen(read) as pipe:
        assert pipe.read() == f"absent this user may not open {docker.socket}"


def test_a_recorded_container_is_owned_without_any_label(docker: Dockerd) -> None:
    docker.container("--name", "db")
    backend = backend_of(docker)
    assert seen(backend, view()) == {}
    found = backend.look_up(view(), Kind.CONTAINER, "db")
    assert found is not None
    assert not found.marks
    around = view(records=(adopted(found.identity, docker.host),))
    assert seen(backend, around)["db"].marks[0].proof is Proof.RECORDED
    docker.docker("rm", "--force", "db")
    assert backend.observe(around).gone == ("rec-1",)


def test_a_record_of_another_daemon_is_neither_gone_nor_owned(
    docker: Dockerd, second_docker: Dockerd
) -> None:
    """The same place, but another daemon answers there."""
    docker.container("--name", "db")
    there = backend_of(docker).look_up(view(), Kind.CONTAINER, "db")
    assert there is not None
    around = view(records=(adopted(there.identity, second_docker.host),))
    observation = backend_of(second_docker).observe(around)
    assert observation.gone == ()
    (unknown,) = [s for s in observation.sightings if not s.shared]
    assert "another engine" in unknown.doubts[0]


def test_two_daemons_are_two_backends(docker: Dockerd, second_docker: Dockerd) -> None:
    docker.container("--name", "first", *MINE)
    second_docker.container("--name", "second", *MINE)
    environ = {**os.environ, "DOCKER_HOST": docker.host}
    one, other, *_ = container_backends(environ, "/nowhere", [("docker", second_docker.host)])
    assert one.name == "docker"
    assert other.name == f"docker:{second_docker.socket}"
    assert list(seen(one, view())) == ["first"]
    assert list(seen(other, view())) == ["second"]
    ids = [dict(s.identity)["daemon"] for b in (one, other) for s in b.observe(view()).sightings]
    assert len(set(ids)) == 2


def test_things_are_found_by_name_full_id_and_a_long_enough_part(docker: Dockerd) -> None:
    identifier = docker.container("--name", "db")
    backend = backend_of(docker)
    for wanted in ("db", identifier, identifier[:12]):
        found = backend.look_up(view(), Kind.CONTAINER, wanted)
        assert found is not None
        assert found.id == identifier
    for wanted in (identifier[:6], "d", ""):
        assert backend.look_up(view(), Kind.CONTAINER, wanted) is None
    bridge = backend.look_up(view(), Kind.NETWORK, "host")
    assert bridge is not None
    assert bridge.protections


def test_testcontainers_are_shown_only(docker: Dockerd) -> None:
    docker.container("--name", "tc", "--label", "org.testcontainers.sessionId=abc")
    assert verdicts(judged(backend_of(docker), view())) == {"tc": Verdict.KEEP}


def test_an_unmarked_container_on_a_claimed_port_is_unknown(docker: Dockerd) -> None:
    docker.container("--name", "stranger", "--publish", "127.0.0.1::80")
    port = int(docker.docker("port", "stranger", "80").rpartition(":")[2])
    assert verdicts(judged(backend_of(docker), view(ports=(port,)))) == {
        "stranger": Verdict.UNKNOWN
    }


def test_podman_s_things_are_owned_by_the_same_rules(podman: Podman) -> None:
    podman.container("--name", "mine", *MINE)
    podman.container("--name", "other")
    podman.podman("volume", "create", *MINE, "data")
    podman.podman("network", "create", *MINE, "net")
    backend = backend_of(podman, "podman")
    assert verdicts(judged(backend, view())) == {
        "mine": Verdict.REAP,
        "net": Verdict.REAP,
        "data": Verdict.KEEP,
    }
    assert {s.key for s in seen(backend, view()).values()} == {
        s.key for s in seen(backend, view()).values()
    }
