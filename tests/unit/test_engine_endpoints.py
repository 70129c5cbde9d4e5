from __future__ import annotations

import json
import os
import socket
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from corral.backends.engine.endpoints import (
    DEFAULT_SOCKET,
    Endpoint,
    discover,
    endpoint_of,
    is_socket,
)
from corral.decide.engine_calls import read_engine_call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".docker").mkdir()
    return tmp_path


def first(home: Path, **environ: str) -> Endpoint:
    return discover(environ, str(home))[0]


def current_context(home: Path, text: str) -> None:
    (home / ".docker/config.json").write_text(text)


def context(directory: Path, name: str, content: object) -> None:
    place = directory / "contexts/meta" / sha256(name.encode()).hexdigest()
    place.mkdir(parents=True)
    (place / "meta.json").write_text(content if isinstance(content, str) else json.dumps(content))


def listen(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    return f"unix://{path}"


def test_the_default_socket_is_where_docker_looks_when_nobody_says_otherwise(home: Path) -> None:
    assert first(home) == Endpoint(
        "docker", f"unix://{DEFAULT_SOCKET}", source="the default socket"
    )
    assert first(home).path == DEFAULT_SOCKET


def test_docker_host_wins_over_every_context(home: Path) -> None:
    found = first(home, DOCKER_HOST="tcp://10.0.0.1:2376", DOCKER_CONTEXT="other")
    assert (found.url, found.path, found.source) == ("tcp://10.0.0.1:2376", "", "DOCKER_HOST")


def test_an_empty_docker_host_says_nothing(home: Path) -> None:
    assert first(home, DOCKER_HOST="").path == DEFAULT_SOCKET


def test_the_context_of_the_variable_wins_over_the_current_one(home: Path) -> None:
    current_context(home, '{"currentContext": "current"}')
    context(home / ".docker", "current", {"Endpoints": {"docker": {"Host": "unix:///a.sock"}}})
    context(home / ".docker", "named", {"Endpoints": {"docker": {"Host": "ssh://far"}}})
    assert first(home).path == "/a.sock"
    found = first(home, DOCKER_CONTEXT="named")
    assert found[:3] == ("docker", "ssh://far", "named")


def test_the_context_named_default_is_the_default_socket(home: Path) -> None:
    current_context(home, '{"currentContext": "default"}')
    assert first(home).path == DEFAULT_SOCKET


def test_the_configuration_may_live_elsewhere(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    context(elsewhere, "x", {"Endpoints": {"docker": {"Host": "unix:///x.sock"}}})
    found = first(home, DOCKER_CONFIG=str(elsewhere), DOCKER_CONTEXT="x")
    assert found.path == "/x.sock"


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\x00"])
def test_a_broken_configuration_is_a_problem_and_never_the_default(home: Path, text: str) -> None:
    current_context(home, text)
    assert "config.json" in first(home).problem
    assert not first(home).path


def test_a_configuration_that_may_not_be_read_is_a_problem(home: Path) -> None:
    (home / ".docker/config.json").mkdir()
    assert "config.json" in first(home).problem


@pytest.mark.parametrize(
    "content",
    ["{", {}, {"Endpoints": []}, {"Endpoints": {"docker": []}}, {"Endpoints": {"docker": {}}}],
)
def test_a_context_without_a_host_is_a_problem(home: Path, content: object) -> None:
    context(home / ".docker", "x", content)
    assert first(home, DOCKER_CONTEXT="x").problem
    assert not first(home, DOCKER_CONTEXT="x").url


def test_a_context_that_does_not_exist_is_a_problem(home: Path) -> None:
    assert "'gone'" in first(home, DOCKER_CONTEXT="gone").problem


def test_a_configuration_without_a_context_is_fine(home: Path) -> None:
    current_context(home, '{"auths": {}, "currentContext": 3}')
    assert first(home).path == DEFAULT_SOCKET


def test_rootless_sockets_are_found_where_they_are(home: Path) -> None:
    run = home / "run"
    docker = listen(run / "docker.sock")
    podman = listen(run / "podman/podman.sock")
    found = discover({"XDG_RUNTIME_DIR": str(run), "DOCKER_HOST": "unix:///no.sock"}, str(home))
    urls = [endpoint.url for endpoint in found]
    assert urls[0] == "unix:///no.sock"
    assert docker in urls
    assert podman in urls
    assert found[urls.index(podman)].name == "podman"
    assert found[urls.index(docker)].name == f"docker:{run}/docker.sock"


def test_a_relative_runtime_directory_is_not_looked_into(home: Path) -> None:
    assert all(e.url.startswith("unix:///") for e in discover({"XDG_RUNTIME_DIR": "x"}, str(home)))


def test_podman_s_own_variable_is_honoured_also_where_nothing_is(home: Path) -> None:
    found = discover({"CONTAINER_HOST": "unix:///p.sock"}, str(home))
    assert found[1] == Endpoint("podman", "unix:///p.sock", source="CONTAINER_HOST")


def test_one_socket_under_two_names_is_one_endpoint(home: Path) -> None:
    run = home / "run"
    podman = listen(run / "podman/podman.sock")
    (run / "docker.sock").symlink_to(run / "podman/podman.sock")
    found = discover({"XDG_RUNTIME_DIR": str(run), "DOCKER_HOST": podman}, str(home))
    assert [e.name for e in found if e.path.startswith(str(home))] == ["docker"]


def test_what_holds_something_recorded_is_looked_at_wherever_the_variables_lead(home: Path) -> None:
    recorded = [("docker", "unix:///recorded.sock"), ("docker", "")]
    found = discover({"DOCKER_HOST": "unix:///now.sock"}, str(home), recorded)
    assert [e.url for e in found[:2]] == ["unix:///now.sock", "unix:///recorded.sock"]
    assert found[1].name == "docker:/recorded.sock"
    same = discover({"DOCKER_HOST": "unix:///recorded.sock"}, str(home), recorded)
    assert [e.name for e in same if e.path == "/recorded.sock"] == ["docker"]


def test_a_recorded_context_is_found_again_by_its_name(home: Path) -> None:
    context(home / ".docker", "a", {"Endpoints": {"docker": {"Host": "ssh://far"}}})
    context(home / ".docker", "b", {"Endpoints": {"docker": {"Host": "ssh://far"}}})
    context(home / ".docker", "local", {"Endpoints": {"docker": {"Host": "unix:///l.sock"}}})
    first = discover({"DOCKER_CONTEXT": "a"}, str(home))[0]
    assert first.place == "context:a"
    recorded = [("docker", "context:a"), ("docker", "context:b")]
    found = discover({"DOCKER_CONTEXT": "a"}, str(home), recorded)
    assert [(e.name, e.url) for e in found[:2]] == [
        ("docker", "ssh://far"),
        ("docker:b", "ssh://far"),
    ]
    assert discover({"DOCKER_CONTEXT": "local"}, str(home))[0].place == "unix:///l.sock"
    gone = discover({}, str(home), [("docker", "context:gone")])[1]
    assert "'gone'" in gone.problem


def test_only_a_socket_is_a_socket(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not is_socket(str(tmp_path / "file"))
    assert not is_socket(str(tmp_path / "none"))
    assert not is_socket("")
    assert is_socket(listen(tmp_path / "s").removeprefix("unix://"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without rights")
def test_a_socket_in_a_closed_directory_counts_as_there(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    child = os.fork()
    if child == 0:
        try:
            os.chmod(tmp_path, 0o755)
            os.setuid(65534)
            os._exit(0 if is_socket(str(closed / "s")) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def leads_to(line: str, home: Path, **environ: str) -> Endpoint | None:
    call = read_engine_call(line.split())
    assert call is not None
    return endpoint_of(call, environ, str(home))


def test_a_docker_command_line_leads_where_its_options_say(home: Path) -> None:
    context(home / ".docker", "far", {"Endpoints": {"docker": {"Host": "ssh://far"}}})
    found = leads_to("docker run box", home, DOCKER_HOST="unix:///d.sock")
    assert found is not None
    assert found.place == "unix:///d.sock"
    found = leads_to("docker -H unix:///o.sock run box", home, DOCKER_HOST="unix:///d.sock")
    assert found is not None
    assert found.place == "unix:///o.sock"
    found = leads_to("docker --context far run box", home, DOCKER_HOST="unix:///d.sock")
    assert found is not None
    assert found.place == "context:far"


def test_a_podman_command_line_leads_to_a_socket_or_to_the_program(home: Path) -> None:
    run = home / "run"
    found = leads_to("podman run box", home)
    assert found is not None
    assert found.place == 'program:["podman"]'
    socket_there = listen(run / "podman/podman.sock")
    found = leads_to("podman run box", home, XDG_RUNTIME_DIR=str(run))
    assert found is not None
    assert found.place == socket_there
    found = leads_to("podman --remote run box", home, XDG_RUNTIME_DIR=str(run))
    assert found is not None
    assert found.place == socket_there
    found = leads_to("podman --root /r run box", home, XDG_RUNTIME_DIR=str(run))
    assert found is not None
    assert (found.place, found.path) == ('program:["podman", "--root", "/r"]', "")
    assert found.program == '["podman", "--root", "/r"]'
    found = leads_to("podman --url unix:///u.sock run box", home)
    assert found is not None
    assert found.place == "unix:///u.sock"


def test_into_some_engines_there_is_no_way_to_look(home: Path) -> None:
    assert leads_to("nerdctl run box", home) is None
    assert leads_to("podman --connection far run box", home) is None
    assert leads_to("podman --remote run box", home) is None
