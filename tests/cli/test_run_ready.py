"""Ready is only what listens on its own port with its own socket; all else is told apart."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral
from support.registry import recorded
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Said
    from support.processes import Tracker

_PROGRAM = """
import os, socket, sys, time
host, port, reuse = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
server = socket.socket(family)
if reuse:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if family == socket.AF_INET6:
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
server.bind((host, port))
server.listen()
print("serving", port, flush=True)
while True:
    server.accept()[0].close()
"""
_INHERITS = """
import os, socket, sys
assert os.environ["LISTEN_PID"] == str(os.getpid()), "LISTEN_PID names another process"
server = socket.socket(fileno=int(sys.argv[1]))
print("serving", server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
"""


@pytest.fixture
def place(private_root: Path) -> Path:
    """A directory with the servers in it; its name is new, and so are the ports it prefers.

    Connections of an earlier test's server would keep a port from servers without SO_REUSEADDR.
    """
    directory = private_root / f"place-{private_root.name}"
    directory.mkdir()
    (directory / "serve.py").write_text(_PROGRAM)
    (directory / "inherit.py").write_text(_INHERITS)
    return directory


def _serve(host: str = "{host}", port: str = "{port}", *, reuse: bool = True) -> tuple[str, ...]:
    return (sys.executable, "serve.py", host, port, str(int(reuse)))


def _ready(place: Path, *argv: str, seconds: float = 20, name: str = "web", **more: Any) -> Said:
    words = ("--detach", "--name", name, "--port", "web", "--wait-ready", f"{seconds:g}")
    options = more.pop("options", ())
    return corral(place, "run", *words, *options, "--json", "--", *argv, **more)


def _nothing_is_left(state_dir: Path) -> None:
    eventually(lambda: recorded(state_dir) == [])


def _answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_server_is_ready_when_it_listens(place: Path) -> None:
    found = _ready(place, *_serve()).data
    assert found["ready"] is True
    assert found["url"] == f"http://127.0.0.1:{found['ports']['web']}"
    assert _answers(found["ports"]["web"])


def test_a_server_behind_a_shell_is_ready_when_it_listens(place: Path) -> None:
    words = " ".join(_serve())
    assert _ready(place, "sh", "-c", f"sleep 0.2; {words}; true").data["ready"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_on_every_address_is_ready(place: Path, host: str) -> None:
    assert _ready(place, *_serve(host)).data["ready"]


def test_a_start_script_that_ends_well_and_leaves_a_daemon_is_ready_with_it(
    place: Path, state_dir: Path
) -> None:
    words = " ".join(_serve())
    script = f"env -i setsid {words} </dev/null >/dev/null 2>&1 & exit 0"
    assert _ready(place, "sh", "-c", script).data["ready"]
    corral(place, "stop", "web")
    assert recorded(state_dir) == []


def test_every_port_must_listen(place: Path) -> None:
    words = ("--detach", "--name", "x", "--port", "a", "--port", "b", "--wait-ready", "0.5")
    done = corral(place, "run", *words, "--", *_serve("{host}", "{port.b}"), check=1)
    ports = ask(place, "status")["environment"]["ports"]
    assert f"nothing listens on port {ports['a']} (a)" in done.err or (
        f"not on port {ports['a']} (a)" in done.err
    )


def test_a_server_that_dies_is_noticed_at_once_with_its_last_output(
    place: Path, state_dir: Path
) -> None:
    began = time.monotonic()
    done = _ready(place, "sh", "-c", "echo some words; echo the reason >&2; exit 3", check=1)
    assert time.monotonic() - began < 10
    (problem,) = done.document["problems"]
    assert problem["code"] == "run-failed"
    assert "exit status 3" in problem["message"]
    assert "some words\nthe reason" in problem["message"]
    _nothing_is_left(state_dir)


def test_a_script_that_ends_well_without_a_server_is_an_error(place: Path) -> None:
    done = _ready(place, "true", check=1)
    assert "ended with exit status 0 before it was ready" in done.out


def test_a_server_that_hopped_is_an_error_naming_both_ports(place: Path, state_dir: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        other = probe.getsockname()[1]
    done = _ready(place, *_serve("127.0.0.1", str(other)), seconds=1, check=1)
    port = ask(place, "status")["environment"]["ports"]["web"]
    (problem,) = done.document["problems"]
    assert f"it listens on 127.0.0.1:{other}, not on port {port} (web)" in problem["message"]
    assert f"serving {other}" in problem["message"]
    _nothing_is_left(state_dir)
    assert not _answers(other)


def test_a_server_that_never_listens_is_taken_down_when_time_is_over(
    place: Path, state_dir: Path
) -> None:
    done = _ready(place, "sh", "-c", "echo $$; sleep 600 & sleep 600", seconds=0.5, check=1)
    assert "nothing listens on port" in done.out
    _nothing_is_left(state_dir)


def test_a_foreign_server_before_the_start_is_an_error_and_nothing_is_started(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    port = ask(place, "port", "claim", "web")["ports"]["web"]
    foreign = _foreign(place, track, port)
    done = _ready(place, "touch", "made", check=4)
    (problem,) = done.document["problems"]
    assert problem["code"] == "held"
    assert f"{port} (web)" in problem["message"]
    assert f"process {foreign.pid} (" in problem["message"]
    assert not (place / "made").exists()
    assert recorded(state_dir) == []
    assert foreign.poll() is None


def _foreign(place: Path, track: Tracker, port: int) -> subprocess.Popen[str]:
    foreign = track.spawn(
        [sys.executable, "serve.py", "127.0.0.1", str(port), "1"],
        cwd=place,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert foreign.stdout is not None
    foreign.stdout.readline()
    return foreign


def test_a_foreign_server_that_comes_first_is_an_error_naming_both(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    port = ask(place, "port", "claim", "web")["ports"]["web"]
    # the command waits until a stranger has its port, then serves elsewhere, as dev servers do
    hops = f"until [ -e go ]; do sleep 0.02; done; exec {' '.join(_serve('127.0.0.1', '0'))}"
    start = track.spawn(
        [*COMMAND, "run", "--detach", "--name", "web", "--port", "web", "--wait-ready", "20",
         "--handoff", "release", "--", "sh", "-c", hops],
        cwd=place, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    eventually(lambda: [r for r in recorded(state_dir) if r["state"] == "live"])
    began = time.monotonic()
    foreign = _foreign(place, track, port)
    (place / "go").touch()
    _, words = start.communicate(timeout=30)
    assert start.returncode == 1
    assert time.monotonic() - began < 15
    assert f"port {port} (web) is answered by process {foreign.pid} (" in words
    _nothing_is_left(state_dir)
    assert foreign.poll() is None


def test_a_second_service_that_wants_a_served_port_is_not_ready_through_the_first(
    place: Path,
) -> None:
    first = _ready(place, *_serve()).data
    done = _ready(place, "sleep", "600", name="second", seconds=5, check=1)
    assert f"is answered by process {first['pid']}" in done.out
    assert alive(first["pid"])


def test_a_client_of_a_running_service_may_name_its_port(place: Path) -> None:
    _ready(place, *_serve())
    client = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])))"
    corral(place, "run", "--port", "web", "--", sys.executable, "-c", client, "{host}", "{port}")


def test_a_server_that_cannot_bind_over_a_held_port_is_told_which_way_works(
    place: Path, state_dir: Path
) -> None:
    done = _ready(place, *_serve(reuse=False), check=1)
    (problem,) = done.document["problems"]
    assert "--handoff release" in problem["remedy"]
    _nothing_is_left(state_dir)
    assert _ready(place, *_serve(reuse=False), options=("--handoff", "release")).data["ready"]


def test_the_way_of_handing_over_can_be_a_setting(place: Path) -> None:
    (place / "corral.toml").write_text('[ports]\nweb = { handoff = "release" }\n')
    assert _ready(place, *_serve(reuse=False)).data["ready"]


def test_a_socket_is_handed_over_with_the_right_pid_and_descriptor(place: Path) -> None:
    options = ("--handoff", "fd")
    found = _ready(place, sys.executable, "inherit.py", "{fd}", options=options).data
    assert found["ready"]
    assert _answers(found["ports"]["web"])
    corral(place, "stop", "web")
    words = f"exec {sys.executable} inherit.py {{fd}}"
    assert _ready(place, "sh", "-c", words, options=options).data["ready"]


def test_a_wrapper_that_keeps_the_pid_for_itself_is_told_which_way_works(place: Path) -> None:
    words = f"{sys.executable} inherit.py {{fd}}; true"
    done = _ready(place, "sh", "-c", words, options=("--handoff", "fd"), check=1)
    (problem,) = done.document["problems"]
    assert "LISTEN_PID names another process" in problem["message"]
    assert "--handoff hold or release" in problem["remedy"]


def test_a_server_that_leaves_the_socket_alone_is_not_ready(place: Path) -> None:
    done = _ready(place, *_serve("127.0.0.1", "0"), options=("--handoff", "fd"), seconds=1, check=1)
    (problem,) = done.document["problems"]
    assert "does not accept connections on the socket of port" in problem["message"]
    assert "listens on 127.0.0.1:" in problem["message"]


def test_two_sockets_are_handed_over_by_name(place: Path) -> None:
    program = """
import os, socket
assert os.environ["LISTEN_FDNAMES"] == "a:b"
servers = [socket.socket(fileno=fd) for fd in (3, 4)]
assert [s.getsockname()[1] for s in servers] == [int(os.environ[n]) for n in ("A_PORT", "B_PORT")]
while True:
    for server in servers:
        server.accept()
"""
    words = ("--detach", "--name", "x", "--port", "a", "--port", "b", "--handoff", "fd")
    found = ask(place, "run", *words, "--wait-ready", "20", "--", sys.executable, "-c", program)
    assert found["ready"]


def test_a_server_on_the_second_loopback_alone_is_ready_and_said(place: Path) -> None:
    words = ("--detach", "--name", "x", "--port", "web", "--wait-ready", "20")
    done = corral(place, "run", *words, "--", *_serve("::1"))
    port = ask(place, "status")["environment"]["ports"]["web"]
    assert f"http://[::1]:{port}" in done.out
    assert f"answers at [::1]:{port} only, not at 127.0.0.1" in done.err


def test_a_service_that_runs_already_is_waited_for_as_well(place: Path, track: Tracker) -> None:
    words = f"until [ -e go ]; do sleep 0.02; done; exec {' '.join(_serve())}"
    corral(place, "run", "--detach", "--name", "web", "--port", "web", "--", "sh", "-c", words)
    waits = track.spawn(
        [*COMMAND, "run", "--json", "--detach", "--name", "web", "--wait-ready", "20", "--", "x"],
        cwd=place, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        waits.wait(0.3)
    (place / "go").touch()
    assert waits.wait(20) == 0
    assert waits.stdout is not None
    assert '"ready": true' in waits.stdout.read()


def test_who_gives_up_waiting_takes_the_start_down(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    waits = track.spawn(
        [*COMMAND, "run", "--detach", "--name", "web", "--port", "web", "--wait-ready", "60",
         "--", "sh", "-c", "echo $$ >pid; exec sleep 600"],
        cwd=place, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    eventually(lambda: (place / "pid").exists() and (place / "pid").read_text())
    pid = int((place / "pid").read_text())
    eventually(lambda: _waits_for_ready(waits.pid))
    waits.send_signal(signal.SIGINT)
    assert waits.wait(30) == 130
    assert not alive(pid)
    _nothing_is_left(state_dir)


def _waits_for_ready(pid: int) -> bool:
    """Whether signals are let through again, as after the start and not during it."""
    with open(f"/proc/{pid}/status") as file:
        blocked = next(line for line in file if line.startswith("SigBlk:"))
    return not int(blocked.split()[1], 16) >> (signal.SIGINT - 1) & 1


def test_waiting_costs_next_to_nothing(place: Path) -> None:
    before = os.times()
    _ready(place, "sleep", "600", seconds=3, check=1)
    after = os.times()
    used = (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )
    assert used < 1.5


def test_in_the_foreground_a_server_that_is_ready_goes_on(place: Path, track: Tracker) -> None:
    process = track.spawn(
        [*COMMAND, "run", "--port", "web", "--wait-ready", "20", "--", *_serve()],
        cwd=place, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("serving")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.terminate()
    assert process.wait(10) == 143


def test_in_the_foreground_a_server_that_never_listens_is_taken_down(
    place: Path, state_dir: Path
) -> None:
    words = ("--port", "web", "--wait-ready", "0.5")
    done = corral(place, "run", *words, "--", "sh", "-c", "sleep 600; true", check=1)
    assert "nothing listens on port" in done.err
    assert recorded(state_dir) == []


def test_in_the_foreground_a_server_that_cannot_bind_is_told_which_way_works(place: Path) -> None:
    done = corral(place, "run", "--port", "web", "--", *_serve(reuse=False), check=1)
    assert "--handoff release" in done.err
