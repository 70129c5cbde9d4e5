"""The gate: one at a time, in order, freed by death, and never waited for without end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import HeldError, StateDirectoryError
from corral.store.gate import Gate
from support.programs import program, started
from support.waiting import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

_HOLD = """
from corral.store.gate import Gate
gate = Gate(sys.argv[1])
gate.enter(10)
say(os.getpid())
sleep()
"""


@pytest.fixture
def path(private_root: Path) -> str:
    return str(private_root / "gate.lock")


@pytest.fixture
def gate(path: str) -> Iterator[Gate]:
    gate = Gate(path)
    yield gate
    gate.close()


def holding(track: Tracker, path: str) -> subprocess.Popen[bytes]:
    child, pid = started(track, [*program(_HOLD), path])
    assert pid == child.pid
    return child


def is_free(path: str) -> bool:
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_is_held_until_it_is_left(gate: Gate, path: str) -> None:
    for _ in range(3):
        gate.enter(1)
        assert not is_free(path)
        gate.leave()
        assert is_free(path)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_who_waits_too_long_is_told_who_holds_it(gate: Gate, path: str, track: Tracker) -> None:
    child = holding(track, path)
    begun = time.monotonic()
    with pytest.raises(HeldError) as raised:
        gate.enter(0.2)
    assert 0.2 <= time.monotonic() - begun < 5
    assert raised.value.remedy
    if sys.platform == "linux":
        assert f"process {child.pid} (" in raised.value.message


def test_without_time_it_is_only_tried(gate: Gate, path: str, track: Tracker) -> None:
    gate.enter(0)
    gate.leave()
    holding(track, path)
    with pytest.raises(HeldError):
        gate.enter(0)


def test_a_killed_holder_lets_the_next_one_in_at_once(
    gate: Gate, path: str, track: Tracker
) -> None:
    child = holding(track, path)
    threading.Timer(0.1, child.kill).start()
    begun = time.monotonic()
    gate.enter(10)
    assert time.monotonic() - begun < 2


def test_a_stopped_holder_is_waited_for_and_can_be_waited_for_again(
    gate: Gate, path: str, track: Tracker
) -> None:
    child = holding(track, path)
    child.send_signal(signal.SIGSTOP)
    for _ in range(3):
        with pytest.raises(HeldError):
            gate.enter(0.05)
    child.kill()
    gate.enter(10)
    gate.leave()
    eventually(lambda: is_free(path))  # the queues that were left each have their turn


def test_who_gave_up_waiting_does_not_get_it_later(gate: Gate, path: str, track: Tracker) -> None:
    child = holding(track, path)
    with pytest.raises(HeldError):
        gate.enter(0.05)
    child.kill()
    child.wait()
    # The queue that was left still stands in line: what it gets it gives back.
    eventually(lambda: is_free(path))
    gate.enter(5)
    gate.leave()


@linux_only
def test_giving_up_leaves_no_file_open(gate: Gate, path: str, track: Tracker) -> None:
    child = holding(track, path)
    before = open_files()
    for _ in range(5):
        with pytest.raises(HeldError):
            gate.enter(0.02)
    child.kill()
    child.wait()
    eventually(lambda: open_files() <= before)


def test_a_deleted_file_leads_to_the_new_one(gate: Gate, path: str) -> None:
    gate.enter(1)
    gate.leave()
    os.unlink(path)
    gate.enter(1)
    assert not is_free(path)
    gate.leave()


def test_who_waits_on_a_file_that_goes_takes_the_new_one(
    gate: Gate, path: str, track: Tracker
) -> None:
    child = holding(track, path)
    entered = threading.Event()

    def enter() -> None:
        gate.enter(10)
        entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    os.unlink(path)
    child.kill()
    thread.join(10)
    assert entered.is_set()
    assert not is_free(path)


def _symlink(path: str) -> None:
    os.symlink(path + ".other", path)


def _directory(path: str) -> None:
    os.mkdir(path)


@pytest.mark.parametrize("prepare", [_symlink, _directory])
def test_what_cannot_be_locked_is_an_error_and_not_contention(
    gate: Gate, path: str, prepare: Any
) -> None:
    prepare(path)
    with pytest.raises(StateDirectoryError) as raised:
        gate.enter(1)
    assert raised.value.remedy


def test_a_missing_directory_is_an_error_and_not_contention(private_root: Path) -> None:
    with pytest.raises(StateDirectoryError):
        Gate(str(private_root / "nowhere" / "gate.lock")).enter(1)


def test_a_forked_child_does_not_keep_it_when_its_parent_is_killed(
    path: str, track: Tracker
) -> None:
    parent, pid = started(
        track,
        [*program(_HOLD.replace("say(os.getpid())", "say(child(sleep))")), path],
    )
    track.pid(pid)
    assert not is_free(path)
    parent.kill()
    parent.wait()
    eventually(lambda: is_free(path))
    os.kill(pid, 0)


def test_a_forked_child_waits_for_its_parent(gate: Gate, path: str) -> None:
    gate.enter(1)
    pid = os.fork()
    if pid == 0:
        try:
            gate.enter(0.1)
        except HeldError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert not is_free(path)


def test_leaving_in_a_forked_child_does_not_free_it(gate: Gate, path: str) -> None:
    gate.enter(1)
    pid = os.fork()
    if pid == 0:
        gate.leave()
        gate.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert not is_free(path)


_CROWD = """
from corral.store.gate import Gate
gate, turns, longest = Gate(sys.argv[1]), 0, 0.0
say()
sys.stdin.readline()
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    begun = time.monotonic()
    gate.enter(30)
    longest = max(longest, time.monotonic() - begun)
    fd = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, b"x")
    os.fdatasync(fd)
    os.close(fd)
    os.unlink(sys.argv[2])
    gate.leave()
    turns += 1
say([turns, longest])
"""


def test_a_crowd_passes_one_by_one_and_nobody_starves(path: str, track: Tracker) -> None:
    # An EEXIST of the file that only one may have at a time ends a process without its last word.
    children = [
        started(track, [*program(_CROWD), path, path + ".alone", "1"], stdin=-1)[0]
        for _ in range(12)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
    turns = []
    for child in children:
        assert child.stdout is not None
        count, longest = json.loads(child.stdout.readline())
        turns.append(count)
        assert longest < 5
    assert min(turns) >= max(turns) / 10


_NO_THREADS = """
import errno
from corral.errors import HeldError
from corral.store.gate import Gate
gate = Gate(sys.argv[1])
refuse(435, errno.ENOSYS)  # clone3
refuse(56, errno.EAGAIN)  # clone
try:
    threading.Thread(target=print).start()
except RuntimeError:
    try:
        gate.enter(0.1)
    except HeldError:
        say("held")
    sys.stdin.readline()
    gate.enter(10)
    say("in")
"""


@pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64",
    reason="names system calls by number",
)
def test_without_threads_it_is_waited_for_all_the_same(
    gate: Gate, path: str, track: Tracker
) -> None:
    gate.enter(1)
    child, word = started(track, [*program(_NO_THREADS), path], stdin=-1)
    assert word == "held"
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"\n")
    child.stdin.flush()
    gate.leave()
    assert json.loads(child.stdout.readline()) == "in"
