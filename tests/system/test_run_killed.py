"""SIGKILL of `corral run` at any step leaves nothing, or processes that records name."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, alive, ask, corral
from support.processes import carrying
from support.registry import recorded
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker

_SCRIPT = "echo $$ >>ran; exec sleep 600"
_FOREGROUND = ("--name", "job", "--port", "web")
_DETACHED = ("--detach", *_FOREGROUND)
_MOST_STEPS = 16


@pytest.fixture
def place(private_root: Path, state_dir: Path) -> Path:
    """A directory with an environment, whose registry is there."""
    directory = private_root / "place"
    directory.mkdir()
    corral(directory, "run", "--", "true")
    assert state_dir.exists()
    return directory


class _Steps:
    """Lets one transaction of the registry pass after another, by holding the gate in between.

    Whoever waits in the kernel's queue for the gate gets it before this test gets it back.
    """

    def __init__(self, fd: int, place: Path) -> None:
        self._fd = fd
        self._place = place

    def somebody_waits(self) -> bool:
        """Whether a process is in the queue (the arrow in proc_locks(5))."""
        inode = os.fstat(self._fd).st_ino
        with open("/proc/locks") as file:
            return any("->" in line and f":{inode} " in line for line in file)

    def come_to_rest(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until somebody is in the queue, or the process has ended or the command run."""
        return eventually(
            lambda: self.somebody_waits() or process.poll() is not None or _ran(self._place)
        )

    def pass_one(self, process: subprocess.Popen[bytes]) -> bool:
        """Let the next transaction pass; False when there is none to come."""
        self.come_to_rest(process)
        if not self.somebody_waits():
            return False
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        return True


@contextmanager
def _gate(state_dir: Path, place: Path) -> Iterator[_Steps]:
    fd = os.open(state_dir / "gate.lock", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield _Steps(fd, place)
    finally:
        os.close(fd)


def _spawn(track: Tracker, place: Path, options: tuple[str, ...]) -> subprocess.Popen[bytes]:
    return track.spawn(
        [*COMMAND, "run", *options, "--", "sh", "-c", _SCRIPT],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _running(state_dir: Path) -> set[int]:
    return {pid for pid in carrying("CORRAL_STATE_DIR", str(state_dir)) if alive(pid)}


def _named(state_dir: Path) -> set[int]:
    return {r["identity"]["pid"] for r in recorded(state_dir) if r["state"] == "live"}


def _only_what_is_recorded_is_left(place: Path, state_dir: Path) -> None:
    """What remains must all be recorded; then one reap takes everything down."""
    eventually(lambda: _settled(state_dir))
    left = _running(state_dir)
    assert left <= _named(state_dir)
    assert {pid for pid in _served(place) if alive(pid)} <= left
    report = ask(place, "reap")
    assert report["remaining"] == []
    assert not any(alive(pid) for pid in left)
    assert recorded(state_dir) == []


def _settled(state_dir: Path) -> bool:
    """Whether nobody is at work any more: a supervisor goes on when who started it is killed."""
    running = _running(state_dir)
    intents = [r for r in recorded(state_dir) if r["state"] == "intent"]
    return running <= _named(state_dir) and not (running and intents)


def _served(place: Path) -> set[int]:
    """The pids under which the command ran."""
    return {int(word) for word in (place / "ran").read_text().split()} if _ran(place) else set()


def _ran(place: Path) -> bool:
    return (place / "ran").exists()


@pytest.mark.parametrize("options", [_FOREGROUND, _DETACHED], ids=["foreground", "detached"])
def test_killed_between_any_two_steps(
    place: Path, state_dir: Path, track: Tracker, options: tuple[str, ...]
) -> None:
    for steps in range(_MOST_STEPS):
        with _gate(state_dir, place) as gate:
            process = _spawn(track, place, options)
            done = [gate.pass_one(process) for _ in range(steps)]
            gate.come_to_rest(process)
            process.kill()
            process.wait()
        _only_what_is_recorded_is_left(place, state_dir)
        if not all(done) or _ran(place):
            assert steps > 2
            return
    pytest.fail("the command never ran")


def test_killed_with_its_supervisor_between_any_two_steps(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    for steps in range(_MOST_STEPS):
        with _gate(state_dir, place) as gate:
            process = _spawn(track, place, _DETACHED)
            done = [gate.pass_one(process) for _ in range(steps)]
            gate.come_to_rest(process)
            service = (
                {int(w) for w in (place / "ran").read_text().split()} if _ran(place) else set()
            )
            for pid in _running(state_dir) - service:
                track.pid(pid)
                os.kill(pid, signal.SIGKILL)
            process.wait()
        _only_what_is_recorded_is_left(place, state_dir)
        if not all(done) or service:
            return
    pytest.fail("the command never ran")


def test_what_waits_to_be_recorded_has_not_run(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    with _gate(state_dir, place) as gate:
        process = _spawn(track, place, _FOREGROUND)
        while not [r for r in recorded(state_dir) if r["state"] == "intent"]:
            assert gate.pass_one(process)
        eventually(gate.somebody_waits)
        assert len(_running(state_dir)) == 2
        assert not _ran(place)
        assert [r["state"] for r in ask(place, "status")["owned"] if r["kind"] == "process"] == [
            "creating"
        ]
        process.kill()
        process.wait()
        eventually(lambda: not _running(state_dir))
    assert not _ran(place)
    _only_what_is_recorded_is_left(place, state_dir)


def test_a_name_whose_start_was_killed_can_be_started_again(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    with _gate(state_dir, place) as gate:
        process = _spawn(track, place, _FOREGROUND)
        while not recorded(state_dir):
            assert gate.pass_one(process)
        process.kill()
        process.wait()
    found = ask(place, "run", *_DETACHED, "--", "sh", "-c", _SCRIPT)
    assert not found["already"]
    eventually(lambda: _ran(place))
    assert (place / "ran").read_text() == f"{found['pid']}\n"


@pytest.mark.soak
@pytest.mark.parametrize("options", [_FOREGROUND, _DETACHED], ids=["foreground", "detached"])
def test_killed_at_random(
    place: Path, state_dir: Path, track: Tracker, soak_seconds: float, options: tuple[str, ...]
) -> None:
    chance = random.Random(os.environ.get("PYTEST_RANDOMLY_SEED"))
    deadline = time.monotonic() + soak_seconds
    while time.monotonic() < deadline:
        process = _spawn(track, place, options)
        try:
            process.wait(chance.uniform(0.02, 0.25))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _only_what_is_recorded_is_left(place, state_dir)
        (place / "ran").unlink(missing_ok=True)
