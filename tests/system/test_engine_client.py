from __future__ import annotations

import os
import socket
import stat
import time
from typing import TYPE_CHECKING

import pytest

from corral.backends.engine.client import Engine
from corral.backends.engine.endpoints import Endpoint
from corral.backends.engine.states import (
    EngineAbsentError,
    EngineDownError,
    EngineError,
    EngineHungError,
    EngineRefusalError,
)
from corral.errors import EnumerationError
from support.scripted_socket import ScriptedSocket, answer

if TYPE_CHECKING:
    from pathlib import Path


def engine(path: Path, **fields: str) -> Engine:
    return Engine(Endpoint("docker", f"unix://{path}", **fields), dict(os.environ))


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def ping(version: str = "1.41", server: str = "Docker/20.10.24 (linux)") -> bytes:
    return answer(b"OK", "200 OK", f"Api-Version: {version}", f"Server: {server}")


def serving(path: Path, *answers: bytes, greeting: bytes | None = None) -> ScriptedSocket:
    """An engine that says hello, then gives these answers in turn."""
    rest = list(answers)

    def script(connection: socket.socket, line: str) -> None:
        if "/_ping " in line:
            connection.sendall(ping() if greeting is None else greeting)
        else:
            connection.sendall(rest.pop(0))

    return ScriptedSocket(path, script)


def test_the_lower_version_of_both_sides_is_spoken(private_root: Path) -> None:
    with serving(private_root / "s", answer(b"[]"), answer(b"[]")) as old:
        asked = engine(old.path)
        assert asked.read(["/containers/json?all=1"], soon()) == [[]]
        asked.read(["/networks"], soon())
        assert asked.about(soon()) == ("Docker", "20.10.24", (1, 41))
    assert old.requests == [
        "GET /_ping HTTP/1.1",
        "GET /v1.41/containers/json?all=1 HTTP/1.1",
        "GET /v1.41/networks HTTP/1.1",
    ]
    with serving(private_root / "t", answer(b"[]"), greeting=ping("9.9")) as new:
        engine(new.path).read(["/networks"], soon())
    assert new.requests[1] == "GET /v1.51/networks HTTP/1.1"


def test_podman_is_recognised(private_root: Path) -> None:
    with serving(private_root / "s", greeting=ping(server="Libpod/4.3.1 (linux)")) as podman:
        about = engine(podman.path).about(soon())
    assert (about.product, about.version, about.podman) == ("Podman", "4.3.1", True)


@pytest.mark.parametrize("version", ["1.23", "x.y", "", "141"])
def test_an_engine_whose_version_does_not_do_is_a_failed_look(
    private_root: Path, version: str
) -> None:
    with (
        serving(private_root / "s", greeting=ping(version)) as odd,
        pytest.raises(EngineError, match=r"too old|which version"),
    ):
        engine(odd.path).about(soon())


def test_no_socket_is_absent(private_root: Path) -> None:
    with pytest.raises(EngineAbsentError, match="no socket") as caught:
        engine(private_root / "none").about(soon())
    assert isinstance(caught.value, EnumerationError)
    assert caught.value.backend == "docker"
    with pytest.raises(EngineAbsentError):
        engine(private_root / "none" / "below").about(soon())


def test_a_socket_that_nobody_listens_at_is_down(private_root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(private_root / "s"))
    with pytest.raises(EngineDownError, match="nothing listens"):
        engine(private_root / "s").about(soon())


def test_a_path_that_no_socket_can_have_is_a_failed_look(private_root: Path) -> None:
    with pytest.raises(EngineError, match="cannot be opened"):
        engine(private_root / ("x" * 120)).about(soon())


def test_a_socket_without_permission_is_denied(private_root: Path) -> None:
    with serving(private_root / "s") as closed:
        closed.path.chmod(0)
        os.chmod(private_root, 0o755)
        code = _as_nobody(lambda: engine(closed.path).about(soon()))
    assert code == "denied"


def _as_nobody(action: object) -> str:
    """The state of the EngineError that `action` raises for another user than root."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            action()  # type: ignore[operator]
        except EngineError as error:
            os.write(write, error.state.encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


def test_a_listener_that_accepts_nothing_is_hung(private_root: Path) -> None:
    """A stopped daemon's queue fills up: connecting itself must not wait for ever."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(private_root / "s"))
        listener.listen(0)
        waiting = []
        try:
            for _ in range(8):
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect_ex(str(private_root / "s"))
            before = time.monotonic()
            with pytest.raises(EngineHungError):
                engine(private_root / "s").about(soon(0.3))
            assert time.monotonic() - before < 2
        finally:
            for connection in waiting:
                connection.close()


def test_an_engine_that_accepts_and_says_nothing_is_hung(private_root: Path) -> None:
    held: list[ScriptedSocket] = []
    with ScriptedSocket(private_root / "s", lambda _c, _l: held[0].wait_until_over()) as silent:
        held.append(silent)
        with pytest.raises(EngineHungError, match="does not answer"):
            engine(silent.path).about(soon(0.2))


def test_an_error_is_a_failed_look_with_the_engine_s_words(private_root: Path) -> None:
    said = answer(b'{"message":"layer store is broken"}', "500 Internal Server Error")
    with (
        serving(private_root / "s", said) as ill,
        pytest.raises(EngineRefusalError, match="layer store is broken") as caught,
    ):
        engine(ill.path).read(["/networks"], soon())
    assert (caught.value.status, caught.value.answer) == (500, "layer store is broken")


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1", b"\xff"])
def test_an_answer_that_is_no_json_is_a_failed_look(private_root: Path, body: bytes) -> None:
    with (
        serving(private_root / "s", answer(body)) as odd,
        pytest.raises(EngineError, match="no JSON"),
    ):
        engine(odd.path).read(["/networks"], soon())


def test_an_error_without_json_is_shown_as_it_is(private_root: Path) -> None:
    said = answer(b"upstream is away", "503 Service Unavailable")
    with (
        serving(private_root / "s", said, answer(b"[]", "503 X")) as ill,
        pytest.raises(EngineRefusalError, match="upstream is away"),
    ):
        engine(ill.path).read(["/networks"], soon())


def test_an_endpoint_with_a_problem_is_never_asked() -> None:
    broken = Endpoint("docker", "", problem="the context x has no metadata")
    with pytest.raises(EngineError, match="no metadata"):
        Engine(broken, {}).about(soon())


def test_other_endpoints_are_reached_through_the_docker_program(private_root: Path) -> None:
    """The stand-in is a docker program that leads to the socket named in its last words."""
    with serving(private_root / "s", answer(b'["far away"]')) as far:
        programs = private_root / "bin"
        programs.mkdir()
        docker = programs / "docker"
        docker.write_text(_DIAL.format(socket=far.path, log=private_root / "log"))
        docker.chmod(0o755)
        environ = {"PATH": f"{programs}:{os.environ['PATH']}", "DOCKER_HOST": "tcp://elsewhere"}
        asked = Engine(Endpoint("docker", "ssh://far", "remote"), environ)
        assert asked.read(["/networks"], soon(10)) == [["far away"]]
    log = (private_root / "log").read_text().splitlines()
    assert log == ["--context remote system dial-stdio - unset"] * 2


_DIAL = """#!/usr/bin/env python3
import os, socket, sys, threading
with open("{log}", "a") as log:
    print(*sys.argv[1:], "-", os.environ.get("DOCKER_HOST", "unset"), file=log)
far = socket.socket(socket.AF_UNIX)
far.connect("{socket}")
def pump():
    while data := os.read(0, 65536):
        far.sendall(data)
threading.Thread(target=pump, daemon=True).start()
while data := far.recv(65536):
    os.write(1, data)
os._exit(0)
"""


def test_what_the_docker_program_says_of_a_failure_is_passed_on(private_root: Path) -> None:
    docker = private_root / "docker"
    docker.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname far' >&2\nexit 255\n")
    docker.chmod(0o755)
    assert docker.stat().st_mode & stat.S_IXUSR
    environ = {"PATH": f"{private_root}:{os.environ['PATH']}"}
    with pytest.raises(EngineDownError, match="resolve hostname far"):
        Engine(Endpoint("docker", "ssh://far"), environ).about(soon())


def test_without_a_docker_program_other_endpoints_are_absent(private_root: Path) -> None:
    with pytest.raises(EngineAbsentError, match="docker"):
        Engine(Endpoint("docker", "ssh://far"), {"PATH": str(private_root)}).about(soon())
