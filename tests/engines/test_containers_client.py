"""The engine client against real engines."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from corral.backends.engine import looking, views
from corral.backends.engine.client import Engine
from corral.backends.engine.endpoints import Endpoint, discover
from corral.backends.engine.states import EngineHungError, EngineRefusalError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.dockerd import Dockerd
    from support.podman import Podman


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def test_docker_says_what_it_holds(docker: Dockerd) -> None:
    identifier = docker.container("--label", "corral.owner=o,corral.session=s", "--name", "web")
    engine = Engine(Endpoint("docker", docker.host), {})
    about = engine.about(soon())
    assert about.product == "Docker"
    found, networks, volumes = engine.read(
        ["/containers/json?all=1", "/networks", "/volumes"], soon()
    )
    (seen,) = views.containers(found)
    assert (seen.id, seen.name, seen.state) == (identifier, "web", "running")
    assert seen.labels == {"corral.owner": "o,corral.session=s"}
    assert {n.name for n in views.networks(networks)} >= {"host", "none"}
    assert views.volumes(volumes) == ()
    assert views.identity_in(views.networks(networks))


def test_podman_says_the_same_and_names_itself_the_same_twice(podman: Podman) -> None:
    identifier = podman.container("--label", "corral.owner=o", "--volume", "named:/n")
    engine = Engine(Endpoint("podman", podman.host), {})
    assert engine.about(soon()).podman
    paths = ["/containers/json?all=1", "/volumes", "/networks", "/info", "/info"]
    found, volumes, networks, first, second = engine.read(paths, soon())
    (seen,) = views.containers(found)
    assert (seen.id, seen.labels["corral.owner"], seen.state) == (identifier, "o", "running")
    assert [v.name for v in views.volumes(volumes)] == ["named"]
    assert all(n.created is not None for n in views.networks(networks))
    assert views.identity_in(views.networks(networks)) == ""
    assert views.identity_told(first) == views.identity_told(second)


def test_a_stopped_daemon_is_hung_and_not_empty(docker: Dockerd) -> None:
    engine = Engine(Endpoint("docker", docker.host), {})
    docker.signal(signal.SIGSTOP)
    try:
        before = time.monotonic()
        with pytest.raises(EngineHungError):
            engine.read(["/containers/json?all=1"], soon(0.5))
        assert time.monotonic() - before < 2
    finally:
        docker.signal(signal.SIGCONT)


def test_an_error_of_the_daemon_comes_with_its_words(docker: Dockerd) -> None:
    engine = Engine(Endpoint("docker", docker.host), {})
    with pytest.raises(EngineRefusalError, match="No such container") as caught:
        engine.read(["/containers/nothing/json"], soon())
    assert caught.value.status == 404


def test_a_context_leads_through_the_docker_program(
    docker: Dockerd, private_home: Path, require_engine: Callable[[str], None]
) -> None:
    """The context names a host that only ssh could reach; the stand-in for ssh stays here."""
    require_engine("docker")
    programs = private_home / "bin"
    programs.mkdir()
    ssh = programs / "ssh"
    # `docker` runs: ssh [options] HOST -- docker system dial-stdio
    ssh.write_text(
        f'#!/bin/sh\nwhile [ "$1" != docker ]; do shift; done\n'
        f'exec env DOCKER_CONTEXT= DOCKER_HOST={docker.host} "$@"\n'
    )
    ssh.chmod(0o755)
    configuration = str(private_home / ".docker")
    environ = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "DOCKER_CONFIG": configuration,
        "DOCKER_CONTEXT": "far",
    }
    create = ["context", "create", "far", "--docker", "host=ssh://someone@far.invalid"]
    docker.run("--config", configuration, *create)
    endpoint = discover(environ, str(private_home))[0]
    assert endpoint[:3] == ("docker", "ssh://someone@far.invalid", "far")
    identifier = docker.container()
    engine = Engine(endpoint, environ)
    (seen,) = views.containers(engine.read(["/containers/json?all=1"], soon(20))[0])
    assert seen.id == identifier


def test_a_docker_engine_keeps_its_identity_when_it_starts_again(second_docker: Dockerd) -> None:
    engine = Engine(Endpoint("docker", second_docker.host), {})
    before = looking.daemon(engine, soon())
    second_docker.restart()
    assert looking.daemon(engine, soon()) == before
