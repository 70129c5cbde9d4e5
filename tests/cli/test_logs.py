"""`corral logs`: what a service wrote, while it runs and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, ask, corral, start
from support.registry import recorded
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

_LIMIT = 10 * 1024 * 1024


@pytest.fixture
def place(private_root: Path) -> Path:
    """A plain directory."""
    directory = private_root / "place"
    directory.mkdir()
    return directory


def _follow(track: Tracker, place: Path, name: str) -> subprocess.Popen[bytes]:
    return track.spawn([*COMMAND, "logs", "-f", name], cwd=place, stdout=subprocess.PIPE)


def test_both_streams_are_in_the_log_also_after_the_end(place: Path, state_dir: Path) -> None:
    start(place, "sh", "-c", "echo out; echo err >&2", name="job")
    eventually(lambda: recorded(state_dir) == [])
    assert corral(place, "logs", "job").out == "out\nerr\n"


def test_following_ends_when_the_service_ends(place: Path, track: Tracker) -> None:
    script = "echo one; until [ -e go ]; do sleep 0.02; done; echo two"
    start(place, "sh", "-c", script, name="job")
    reader = _follow(track, place, "job")
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"one\n"
    with pytest.raises(subprocess.TimeoutExpired):
        reader.wait(0.3)
    (place / "go").touch()
    assert reader.stdout.read() == b"two\n"
    assert reader.wait(20) == 0


def test_following_goes_on_while_a_daemon_of_the_service_lives(place: Path, track: Tracker) -> None:
    daemon = "sh -c 'until [ -e go ]; do sleep 0.02; done; echo late' &"
    start(place, "sh", "-c", f"echo early; {daemon} exit 0", name="job")
    reader = _follow(track, place, "job")
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"early\n"
    (place / "go").touch()
    assert reader.stdout.read() == b"late\n"


def test_following_is_left_with_an_interrupt_and_the_service_goes_on(
    place: Path, track: Tracker
) -> None:
    start(place, "sh", "-c", "echo one; exec sleep 600", name="job")
    reader = _follow(track, place, "job")
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"one\n"
    reader.send_signal(signal.SIGINT)
    assert reader.wait(10) == 0
    assert ask(place, "logs", "job")["running"]


def test_the_bytes_of_the_service_are_not_changed(place: Path, state_dir: Path) -> None:
    program = r"import os; os.write(1, bytes(range(256)) + b'\x1b[31m')"
    start(place, sys.executable, "-c", program, name="job")
    eventually(lambda: recorded(state_dir) == [])
    done = subprocess.run([*COMMAND, "logs", "job"], cwd=place, capture_output=True, check=True)
    assert done.stdout == bytes(range(256)) + b"\x1b[31m"


def test_a_log_that_grows_without_end_is_kept_small(place: Path) -> None:
    pid = start(place, sys.executable, "-c", "while True: print('x' * 1000)", name="job")
    path = ask(place, "logs", "job")["path"]
    eventually(lambda: os.path.exists(f"{path}.1"), seconds=30)
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: os.stat(path).st_size <= _LIMIT, seconds=10)
    assert os.stat(f"{path}.1").st_size <= 3 * _LIMIT
    corral(place, "stop", "job")


def test_json_has_the_end_of_the_log_as_text(place: Path, state_dir: Path) -> None:
    start(place, "sh", "-c", r"printf 'a\377\n'", name="job")
    eventually(lambda: recorded(state_dir) == [])
    found = ask(place, "logs", "job")
    assert set(found) == {"name", "path", "running", "text"}
    assert (found["name"], found["running"], found["text"]) == ("job", False, "a\ufffd\n")
    assert corral(place, "logs", "-f", "--json", "job", check=2).status == 2


def test_a_name_that_was_never_used_is_an_error_that_says_what_runs(place: Path) -> None:
    assert "no environment yet" in corral(place, "logs", "jobs", check=2).err
    start(place, "sleep", "600", name="job")
    done = corral(place, "logs", "jobs", check=2)
    assert "nothing is called jobs" in done.err
    assert "what runs there: job" in done.err
    assert "cannot be used" in corral(place, "logs", "../job", check=2).err


def test_a_service_in_the_foreground_has_no_log(place: Path, track: Tracker) -> None:
    process = track.spawn(
        [*COMMAND, "run", "--name", "job", "--", "sh", "-c", "echo up; exec sleep 600"],
        cwd=place, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    assert "runs in the foreground" in corral(place, "logs", "job", check=2).err


def test_a_reader_that_stops_reading_ends_the_command_quietly(place: Path) -> None:
    start(place, "sh", "-c", "yes | head -n 100000; echo end", name="job")
    words = " ".join((*COMMAND, "logs", "-f", "job"))
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -n 1"],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("y\n", "")
