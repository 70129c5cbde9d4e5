"""`corral run -- CMD` in the foreground is the command itself, but recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral, pids
from support.registry import recorded
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

# Says that it is there, then each signal that reaches it; ends on TERM.
_LISTENS = """
import os, signal, sys
def say(number, frame=None):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
    if number == signal.SIGTERM:
        os._exit(7)
for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT"):
    signal.signal(getattr(signal, "SIG" + name), say)
os.write(1, f"{os.getpid()}\\n".encode())
while True:
    signal.pause()
"""


@pytest.fixture
def place(private_root: Path) -> Path:
    """A plain directory."""
    directory = private_root / "place"
    directory.mkdir()
    return directory


def _start(track: Tracker, place: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    return track.spawn(
        [*COMMAND, "run", *words], cwd=place, stdout=subprocess.PIPE, text=True, **options
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 255])
def test_the_exit_status_is_the_commands(place: Path, status: int) -> None:
    assert corral(place, "run", "--", "sh", "-c", f"exit {status}", check=None).status == status


def test_a_command_that_a_signal_ends_gives_128_and_the_signal(place: Path) -> None:
    assert corral(place, "run", "--", "sh", "-c", "kill -KILL $$", check=None).status == 137


def test_nothing_is_added_to_what_the_command_reads_and_writes(place: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "--", "sh", "-c", "cat; echo words >&2"],
        cwd=place, input="in\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("in\n", "words\n")


def test_bytes_pass_through_a_pipeline_unchanged(place: Path) -> None:
    payload = bytes(range(256)) * 4096
    done = subprocess.run(
        [*COMMAND, "run", "--", "cat"], cwd=place, input=payload, capture_output=True, check=True
    )
    assert done.stdout == payload


def test_a_closed_pipe_ends_the_command_as_without_corral(place: Path) -> None:
    script = f"{' '.join(COMMAND)} run -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=place, capture_output=True, text=True, check=True
    )
    assert done.stdout == "y\n141\n"


def test_process_substitution_reaches_the_command(place: Path) -> None:
    script = f"{' '.join(COMMAND)} run -- cat <(echo through)"
    done = subprocess.run(
        ["bash", "-c", script], cwd=place, capture_output=True, text=True, check=True
    )
    assert done.stdout == "through\n"


def test_words_reach_the_command_as_they_were_typed(place: Path) -> None:
    words = ["a b", "", "--json", "--", "-x", "$HOME", "{port}", "\n", "日本"]
    program = "import sys; print(sys.argv[1:])"
    done = corral(place, "run", "--", sys.executable, "-c", program, *words)
    assert done.out == f"{words}\n"


def test_the_command_carries_the_owners_mark_and_nobody_else_does(
    place: Path, state_dir: Path
) -> None:
    done = corral(place, "run", "--", "sh", "-c", "echo $CORRAL_OWNER", check=None)
    assert ask(place, "status")["owner"] == done.out.strip()
    assert recorded(state_dir) == []
    assert "CORRAL_OWNER" not in os.environ


def test_an_inherited_mark_does_not_decide_whose_the_command_is(place: Path) -> None:
    done = corral(
        place,
        "run",
        "--",
        "sh",
        "-c",
        "echo $CORRAL_OWNER",
        env={"CORRAL_OWNER": "own-other"},
        check=None,
    )
    assert done.out.strip().startswith("own-")
    assert done.out.strip() != "own-other"


def test_the_session_decides_whose_the_command_is(place: Path) -> None:
    script = ("sh", "-c", "echo $CORRAL_OWNER")
    one = corral(place, "run", "--session", "one", "--", *script, check=None).out
    again = corral(place, "run", "--", *script, env={"CORRAL_SESSION": "one"}, check=None).out
    two = corral(place, "run", "--session", "two", "--", *script, check=None).out
    assert one == again != two


def test_ports_are_claimed_and_given_as_variables_and_placeholders(place: Path) -> None:
    script = 'echo "$PORT $WEB_PORT $API_PORT $0"'
    words = ("{port} {port.web} {port.api} {host} {fd}",)
    asked = ("--port", "web", "--port", "api")
    done = corral(place, "run", *asked, "--", "sh", "-c", script, *words)
    ports = ask(place, "status")["environment"]["ports"]
    web, api = ports["web"], ports["api"]
    assert done.out == f"{web} {web} {api} {web} {web} {api} 127.0.0.1 {{fd}}\n"
    again = corral(place, "run", "--port", "api", "--", "sh", "-c", "echo $PORT", check=None)
    assert again.out == f"{api}\n"


def test_variables_of_the_environment_reach_the_command(place: Path) -> None:
    (place / "corral.toml").write_text('[ports]\nweb = 3000\n[vars]\nGREETING = "hello"\n')
    assert corral(place, "up", check=None).status == 0
    done = corral(place, "run", "--", "sh", "-c", "echo $GREETING $PORT", check=None)
    port = ask(place, "status")["environment"]["ports"]["web"]
    assert done.out == f"hello {port}\n"


def test_while_it_runs_the_process_is_recorded_with_its_identity(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    process = _start(track, place, "--name", "web", "--", sys.executable, "-c", _LISTENS)
    pid = int(_line(process))
    (record,) = recorded(state_dir)
    assert (record["role"], record["name"], record["state"]) == ("service", "web", "live")
    assert record["identity"]["pid"] == pid
    assert record["detail"]["argv"][0] == sys.executable
    owned = ask(place, "status")["owned"]
    assert [(r["kind"], r["id"], r["name"]) for r in owned if r["kind"] == "process"] == [
        ("process", str(pid), "web")
    ]
    process.terminate()
    assert process.wait(10) == 7
    assert recorded(state_dir) == []


@pytest.mark.parametrize("name", ["INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"])
def test_a_signal_to_corral_reaches_the_command_once(
    place: Path, track: Tracker, name: str
) -> None:
    process = _start(track, place, "--", sys.executable, "-c", _LISTENS)
    _line(process)
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert _line(process) == f"SIG{name}"
    process.terminate()
    assert _line(process) == "SIGTERM"
    assert process.wait(10) == 7


def test_what_the_command_sends_to_its_own_group_it_gets_once(place: Path, track: Tracker) -> None:
    program = _LISTENS.replace("while True:", "os.kill(0, signal.SIGUSR1)\nwhile True:")
    process = _start(track, place, "--", sys.executable, "-c", program, process_group=0)
    _line(process)
    assert _line(process) == "SIGUSR1"
    process.terminate()
    assert _line(process) == "SIGTERM"


def test_a_command_that_ignores_a_signal_goes_on(place: Path, track: Tracker) -> None:
    process = _start(track, place, "--", "sh", "-c", "trap '' INT; echo up; read line; exit 5",
                     stdin=subprocess.PIPE)  # fmt: skip
    _line(process)
    process.send_signal(signal.SIGINT)
    process.communicate("go\n")
    assert process.returncode == 5


def test_a_stopped_command_without_a_terminal_does_not_stop_corral(
    place: Path, track: Tracker
) -> None:
    process = _start(track, place, "--", sys.executable, "-c", _LISTENS, start_new_session=True)
    pid = int(_line(process))
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _state(pid) == "T")
    process.send_signal(signal.SIGCONT)
    assert _line(process) == "SIGCONT"
    assert _state(pid) != "T"
    process.terminate()
    assert process.wait(10) == 7


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_what_is_not_there_is_127_and_leaves_no_record(place: Path, state_dir: Path) -> None:
    done = corral(place, "run", "--name", "web", "--", "no-such-program", check=None)
    assert done.status == 127
    assert "no-such-program: command not found" in done.err
    assert recorded(state_dir) == []


def test_what_cannot_be_executed_is_126_and_leaves_no_record(place: Path, state_dir: Path) -> None:
    (place / "plain").write_text("")
    done = corral(place, "run", "--", "./plain", check=None)
    assert done.status == 126
    assert recorded(state_dir) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no command"),
        (("--",), "no command"),
        (("--", ""), "no command"),
        (("--handoff", "give", "--", "true"), "handoff"),
        (("--wait-ready", "5", "--", "true"), "port"),
        (("--wait-ready", "soon", "--port", "web", "--", "true"), "soon"),
        (("--wait-ready", "0", "--port", "web", "--", "true"), "0"),
        (("--port", "web", "--port", "web", "--", "true"), "twice"),
        (("--port", "a b", "--", "true"), "a b"),
        (("--name", "../x", "--", "true"), "../x"),
        (("--name=-x", "--", "true"), "-x"),
        (("--name", "x" * 65, "--", "true"), "xxx"),
        (("--colour", "--", "true"), "colour"),
    ],
)
def test_a_wrong_use_is_told_and_changes_nothing(
    place: Path, state_dir: Path, words: tuple[str, ...], said: str
) -> None:
    done = corral(place, "run", *words, check=None)
    assert done.status == 2
    assert said in done.err
    assert not state_dir.exists()


def test_a_run_within_a_run_is_recorded_as_well(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    inner = (*COMMAND, "run", "--", *COMMAND, "run", "--", sys.executable, "-c", _LISTENS)
    process = _start(track, place, "--", *inner)
    pid = int(_line(process))
    records = recorded(state_dir)
    assert [r["role"] for r in records] == ["service"] * 3
    assert len({r["owner"] for r in records}) == 1
    assert records[-1]["identity"]["pid"] == pid
    process.terminate()
    assert process.wait(10) == 7
    assert recorded(state_dir) == []


def test_a_name_that_runs_already_is_said_and_nothing_is_started(
    place: Path, track: Tracker
) -> None:
    process = _start(track, place, "--name", "web", "--", sys.executable, "-c", _LISTENS)
    pid = int(_line(process))
    done = corral(place, "run", "--name", "web", "--", "touch", "made", check=None)
    assert done.status == 0
    assert "web runs already" in done.err
    assert not (place / "made").exists()
    found = ask(place, "run", "--name", "web", "--detach", "--", "touch", "made")
    assert (found["already"], found["pid"], found["exit_status"]) == (True, pid, None)


def test_the_same_name_in_another_environment_is_another_service(
    place: Path, private_root: Path, track: Tracker
) -> None:
    other = private_root / "other"
    other.mkdir()
    _line(_start(track, place, "--name", "web", "--", sys.executable, "-c", _LISTENS))
    assert corral(other, "run", "--name", "web", "--", "touch", "made", check=None).status == 0
    assert (other / "made").exists()


def test_json_tells_what_was_run(place: Path) -> None:
    document = corral(
        place,
        "run",
        "--json",
        "--name",
        "job",
        "--port",
        "web",
        "--",
        "sh",
        "-c",
        "exit 9",
        check=9,
    ).document
    found = document["data"]
    assert document["result"] == "failed"
    assert set(found) == {
        "name", "record", "pid", "ports", "url", "log", "already", "ready", "exit_status",
    }  # fmt: skip
    assert (found["name"], found["exit_status"], found["already"]) == ("job", 9, False)
    assert found["url"] == f"http://127.0.0.1:{found['ports']['web']}"
    assert (found["log"], found["ready"]) == (None, None)


def test_json_tells_of_a_command_that_is_not_there(place: Path) -> None:
    document = corral(place, "run", "--json", "--", "no-such-program", check=127).document
    assert document["result"] == "failed"
    assert [p["code"] for p in document["problems"]] == ["not-executable"]


def test_what_a_command_leaves_behind_is_recorded_before_corral_ends(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    script = "sleep 600 & echo $!; exit 0"
    done = corral(
        place, "run", "--name", "job", "--", "sh", "-c", f"({script}) >pid 2>&1", check=None
    )
    assert done.status == 0
    pid = track.pid(int((place / "pid").read_text()))
    (record,) = recorded(state_dir)
    assert (record["role"], record["name"], record["identity"]["pid"]) == ("descendant", "job", pid)


def test_a_daemon_with_an_empty_environment_is_recorded_and_reaped(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    daemon = "env -i setsid sh -c 'sleep 601 & sleep 602; true' </dev/null >/dev/null 2>&1 &"
    start = place / "start.sh"
    start.write_text(f"#!/bin/sh\n{daemon}\nexit 0\n")
    start.chmod(0o755)
    corral(place, "run", "--", "./start.sh")
    assert {r["role"] for r in recorded(state_dir)} == {"descendant"}
    owned = eventually(lambda: _three(ask(place, "status")["owned"]))
    for pid in owned:
        track.pid(pid)
    assert pids(ask(place, "reap")["removed"]) == owned
    assert not any(alive(pid) for pid in owned)
    assert recorded(state_dir) == []


def _three(rows: list[dict[str, Any]]) -> set[int]:
    found = pids(rows)
    return found if len(found) == 3 else set()


def test_a_program_that_wipes_its_environment_is_found_by_descent(
    place: Path, track: Tracker
) -> None:
    # as setproctitle does: the memory that /proc/PID/environ shows is overwritten
    wipe = """
import ctypes, os, signal
with open("/proc/self/stat", "rb") as file:
    fields = file.read().rpartition(b")")[2].split()
begin, end = int(fields[47]), int(fields[48])
ctypes.memset(begin, ord("x"), end - begin)
print(os.getpid(), flush=True)
signal.pause()
"""
    process = _start(track, place, "--", "sh", "-c", '"$@"; true', "sh", sys.executable, "-c", wipe)
    pid = track.pid(int(_line(process)))
    with open(f"/proc/{pid}/environ", "rb") as file:
        assert b"CORRAL_OWNER" not in file.read()
    assert str(pid) in {r["id"] for r in ask(place, "status")["owned"]}
    assert str(pid) in {r["id"] for r in ask(place, "reap")["removed"]}
    assert not alive(pid)


def test_a_terminal_multiplexer_that_was_started_is_not_recorded(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    # a look-alike: the name is what tells it
    program = place / "tmux"
    os.symlink("/bin/sleep", program)
    done = corral(
        place, "run", "--", "sh", "-c", "./tmux 600 >/dev/null 2>&1 & echo $!", check=None
    )
    pid = track.pid(int(done.out))
    assert recorded(state_dir) == []
    assert alive(pid)


def test_everything_of_a_run_is_gone_after_a_reap(place: Path, track: Tracker) -> None:
    process = _start(track, place, "--", sys.executable, "-c", _LISTENS)
    pid = int(_line(process))
    found = ask(place, "reap")
    assert [r["id"] for r in found["removed"] if r["kind"] == "process"] == [str(pid)]
    assert process.wait(10) == 7


def test_env_decides_the_environment_and_leaves_the_working_directory(
    place: Path, private_root: Path
) -> None:
    other = private_root / "other"
    other.mkdir()
    done = corral(place, "run", "--env", str(other), "--", "pwd", check=None)
    assert done.out == f"{place}\n"
    assert ask(place, "status", "--env", str(other))["environment"]["path"] == str(other)
    assert ask(place, "status")["environment"] is None


def test_a_hang_up_that_corral_was_told_to_ignore_is_ignored(place: Path, track: Tracker) -> None:
    words = " ".join(COMMAND)
    process = track.spawn(
        ["sh", "-c", f"trap '' HUP; exec {words} run -- sh -c 'echo up; read line; exit 4'"],
        cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    _line(process)
    process.send_signal(signal.SIGHUP)
    process.communicate("go\n")
    assert process.returncode == 4


def test_the_data_is_one_json_document_after_what_the_command_wrote(place: Path) -> None:
    done = corral(place, "run", "--json", "--", "echo", "own words", check=None)
    first, document = done.out.splitlines()
    assert first == "own words"
    assert json.loads(document)["data"]["exit_status"] == 0
