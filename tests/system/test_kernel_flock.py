"""Locks: one holder, freed by its death, and an error is never mistaken for contention."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import StateDirectoryError, UsageError
from corral.kernel import lockholder
from corral.kernel.flock import FileLock, holder
from corral.kernel.identity import decode_identity, own_identity
from support.engines import require_engine
from support.programs import program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

_TOOLS = """
import errno
from corral.errors import StateDirectoryError
from corral.kernel.flock import FileLock, holder
lock = FileLock(sys.argv[1])
"""
_HOLD = _TOOLS + "say(lock.acquire(10, note=sys.argv[2])); sleep()"


@pytest.fixture
def path(private_root: Path) -> str:
    return str(private_root / "some.lock")


@pytest.fixture
def lock(path: str) -> Iterator[FileLock]:
    """A lock that is released at the end."""
    lock = FileLock(path)
    yield lock
    lock.release()


def holding(track: Tracker, path: str, note: str = "") -> subprocess.Popen[bytes]:
    child, got = started(track, [*program(_HOLD), path, note])
    assert got is True
    return child


def is_free(path: str) -> bool:
    other = FileLock(path)
    try:
        return other.acquire(0)
    finally:
        other.release()


def test_there_is_one_holder_at_a_time(lock: FileLock, path: str, track: Tracker) -> None:
    assert lock.acquire(0)
    assert lock.held
    assert not is_free(path)
    assert said([*program(_TOOLS + "say(lock.acquire(0))"), path]) is False
    lock.release()
    assert not lock.held
    holding(track, path)
    assert not lock.acquire(0)
    assert not lock.held


def test_a_lock_is_not_taken_twice_by_one_object(lock: FileLock) -> None:
    assert lock.acquire(None)
    with pytest.raises(UsageError):
        lock.acquire(0)
    assert lock.held


def test_releasing_what_is_not_held_does_nothing(lock: FileLock, path: str) -> None:
    lock.release()
    assert lock.acquire(0)
    lock.release()
    lock.release()
    assert is_free(path)


def test_the_file_is_private_and_stays(lock: FileLock, path: str) -> None:
    assert lock.acquire(0)
    assert os.stat(path).st_mode & 0o777 == 0o600
    lock.release()
    assert os.path.exists(path)


def test_a_killed_holder_frees_the_lock_at_once(path: str, track: Tracker) -> None:
    child = holding(track, path, "work")
    child.kill()
    child.wait()
    assert is_free(path)
    assert holder(path) is None


@pytest.mark.parametrize(
    "fork",
    [
        "grandchild = child(sleep)",
        "grandchild = subprocess.Popen(['sleep', '600']).pid",
        "grandchild = subprocess.Popen(['sleep', '600'], close_fds=False).pid",
        "grandchild = subprocess.Popen(['sleep', '600'], preexec_fn=lambda: None).pid",
        "grandchild = os.posix_spawnp('sleep', ['sleep', '600'], os.environ)",
        "import pty\ngrandchild = pty.fork()[0]\nif not grandchild: sleep()",
    ],
)
def test_a_child_does_not_keep_the_lock_of_its_killed_parent(
    path: str, track: Tracker, fork: str
) -> None:
    source = f"{_TOOLS}\nlock.acquire(10)\n{fork}\nsay(grandchild); sleep()"
    parent, grandchild = started(track, [*program(source), path])
    track.pid(grandchild)
    assert not is_free(path)
    parent.kill()
    parent.wait()
    assert eventually(lambda: is_free(path), 1)  # as soon as the child runs
    if "pty" not in fork:  # there its terminal went with its parent
        os.kill(grandchild, 0)


def test_a_forked_child_does_not_think_that_it_holds_the_lock(path: str) -> None:
    source = (
        _TOOLS
        + """
lock.acquire(10)
def look():
    before = lock.held
    lock.release()
    say([before, FileLock(sys.argv[1]).acquire(0)])
os.waitpid(child(look), 0)
assert lock.held
"""
    )
    assert said([*program(source), path]) == [False, False]


@linux_only
def test_forks_while_other_threads_lock_keep_nothing_open(path: str) -> None:
    source = (
        _TOOLS
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
stop = threading.Event()
def work():
    mine = FileLock(sys.argv[1])
    while not stop.is_set():
        if mine.acquire(0.0005):
            mine.release()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
reader, writer = os.pipe()
def linger():
    os.write(writer, b"x")
    sleep()
pids = [child(linger) for _ in range(60)]
stop.set()
for thread in threads:
    thread.join()
for _ in pids:
    os.read(reader, 1)
real = os.path.realpath(sys.argv[1])
kept = [pid for pid in pids for fd in os.listdir(f"/proc/{pid}/fd")
        if os.readlink(f"/proc/{pid}/fd/{fd}") == real]
for pid in pids:
    end(pid)
say(kept)
"""
    )
    assert said([*program(source), path]) == []


def test_a_release_frees_the_lock_also_from_a_c_programs_fork(path: str, track: Tracker) -> None:
    source = (
        _TOOLS
        + """
lock.acquire(10)
forked = libc.fork()                # as a C library does: Python is not told
if not forked:
    sleep()
lock.release()
say(forked)
sleep()
"""
    )
    _, forked = started(track, [*program(source), path])
    track.pid(forked)
    assert is_free(path)


@linux_only
def test_a_deleted_file_still_has_one_holder(path: str, track: Tracker) -> None:
    child = holding(track, path, "work")
    os.unlink(path)
    assert not is_free(path)
    assert not is_free(path)  # nor for the next one, who finds a file again
    found = holder(path)
    assert found is not None
    assert found["pid"] == child.pid
    assert said([*program(_TOOLS + "say(lock.acquire(0.05))"), path]) is False
    child.kill()
    child.wait()
    assert is_free(path)


@linux_only
def test_a_deleted_file_has_one_holder_within_one_process_too(lock: FileLock, path: str) -> None:
    assert lock.acquire(0)
    os.unlink(path)
    assert not is_free(path)
    lock.release()
    assert is_free(path)


@linux_only
def test_who_waits_for_a_deleted_lock_gets_it_at_its_end(path: str, track: Tracker) -> None:
    first = holding(track, path)
    os.unlink(path)
    source = _TOOLS + "say(); say(lock.acquire(30)); sleep()"
    second, _ = started(track, [*program(source), path])
    assert second.stdout is not None
    eventually(lambda: os.path.exists(path))
    assert not is_free(path)
    first.kill()
    assert second.stdout.readline() == b"true\n"
    assert not is_free(path)


@linux_only
@pytest.mark.parametrize("linked", [True, False])
def test_a_replaced_file_still_has_one_holder(
    path: str, track: Tracker, private_root: Path, linked: bool
) -> None:
    reached = path
    if linked:
        (private_root / "link").symlink_to(private_root)
        reached = str(private_root / "link" / "some.lock")
    child = holding(track, path, "work")
    shutil.copy(path, path + ".copy")
    os.replace(path + ".copy", path)
    assert not is_free(reached)
    child.kill()
    child.wait()
    assert is_free(reached)


def test_a_file_that_was_deleted_while_free_is_made_again(lock: FileLock, path: str) -> None:
    assert is_free(path)
    os.unlink(path)
    assert lock.acquire(0)
    assert not is_free(path)


def test_whoever_waited_on_a_file_that_goes_takes_the_new_one(path: str, track: Tracker) -> None:
    first = holding(track, path)
    source = _TOOLS + "say(); say(lock.acquire(30)); sleep()"
    second, _ = started(track, [*program(source), path])
    assert second.stdout is not None
    eventually(lambda: is_at_work_on(second, path))
    os.unlink(path)
    first.kill()
    assert second.stdout.readline() == b"true\n"
    assert os.path.exists(path)
    assert not is_free(path)


def is_at_work_on(child: subprocess.Popen[bytes], path: str) -> bool:
    """Whether the process has the lock's file open; one that does not get it waits then."""
    if sys.platform != "linux":
        return True
    return path in map(os.path.realpath, glob.glob(f"/proc/{child.pid}/fd/*"))


class Place:
    """Something else where the lock file should be."""

    @staticmethod
    def symlink(path: str) -> None:
        os.symlink("/dev/null", path)

    @staticmethod
    def directory(path: str) -> None:
        os.mkdir(path)

    @staticmethod
    def fifo(path: str) -> None:
        os.mkfifo(path)

    @staticmethod
    def orphaned(path: str) -> None:
        os.rmdir(os.path.dirname(path))


@pytest.mark.parametrize("place", [Place.symlink, Place.directory, Place.fifo, Place.orphaned])
def test_what_cannot_be_locked_is_an_error_and_not_held(private_root: Path, place: Any) -> None:
    (private_root / "locks").mkdir()
    path = str(private_root / "locks" / "some.lock")
    place(path)
    before = len(os.listdir("/dev/fd"))
    for timeout in (0, 0.01, None):
        with pytest.raises(StateDirectoryError) as caught:
            FileLock(path).acquire(timeout)
        assert caught.value.resource == path
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_an_error(path: str) -> None:
    with open(path, "w"):
        os.chown(path, 65534, 65534)
    with pytest.raises(StateDirectoryError, match="another user"):
        FileLock(path).acquire(0)


@linux_only
@pytest.mark.parametrize("timeout", ["0", "5", "None"])
def test_a_lock_that_the_system_refuses_is_an_error_and_not_held(path: str, timeout: str) -> None:
    source = (
        _TOOLS
        + f"""
refuse({{"x86_64": 73, "aarch64": 32}}[os.uname().machine], errno.ENOLCK)
try:
    lock.acquire({timeout})
except StateDirectoryError as error:
    say([error.message.partition(": ")[2], lock.held])
"""
    )
    assert said([*program(source), path]) == ["No locks available", False]


def test_an_unwritable_directory_is_an_error(private_root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    private_root.chmod(0o755)
    source = (
        _TOOLS
        + "become_nobody()\n"
        + "try:\n    lock.acquire(0)\nexcept StateDirectoryError as error:\n    say(error.message)"
    )
    assert "Permission denied" in said([*program(source), str(private_root / "x.lock")])


def test_a_wait_ends_with_its_time_and_costs_none(
    lock: FileLock, path: str, track: Tracker
) -> None:
    child = holding(track, path)
    begin, worked = time.monotonic(), time.process_time()
    assert not lock.acquire(0.3)
    assert 0.3 <= time.monotonic() - begin < 5
    assert time.process_time() - worked < 0.1
    assert not lock.acquire(-1)
    child.kill()
    child.wait()
    assert is_free(path)


def test_whoever_gave_up_waiting_is_in_nobodys_way(lock: FileLock, path: str) -> None:
    late = FileLock(path)
    for _round in range(20):
        assert lock.acquire(0)
        assert not late.acquire(0.002)
        lock.release()
        assert is_free(path)


@pytest.mark.parametrize("timeout", [30, None])
def test_whoever_waits_gets_the_lock_when_it_is_free(path: str, timeout: float | None) -> None:
    source = (
        _TOOLS
        + f"""
lock.acquire(None)
threading.Timer(0.05, lock.release).start()
other = FileLock(sys.argv[1])
say(other.acquire({timeout}))
"""
    )
    assert said([*program(source), path]) is True


@pytest.mark.parametrize("timeout", [30, None])
def test_a_waiter_can_be_interrupted(path: str, track: Tracker, timeout: float | None) -> None:
    holding(track, path)
    source = (
        _TOOLS
        + f"""
say()
try:
    lock.acquire({timeout})
except KeyboardInterrupt:
    say(lock.held)
"""
    )
    child, _ = started(track, [*program(source), path])
    assert child.stdout is not None
    eventually(lambda: is_at_work_on(child, path))
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == b"false\n"
    assert child.wait(10) == 0


def test_the_holder_is_told_with_what_it_does_and_since_when(path: str, track: Tracker) -> None:
    child = holding(track, path, "reap Δ")
    found = holder(path)
    assert found is not None
    assert (found["pid"], found["command"]) == (child.pid, "reap Δ")
    assert found["since"] == pytest.approx(time.time(), abs=60)
    assert decode_identity(found["identity"]).pid == child.pid


@linux_only
def test_a_holder_without_a_note_is_told_by_the_kernel(path: str, track: Tracker) -> None:
    child = holding(track, path)
    found = holder(path)
    assert found is not None
    assert found["pid"] == child.pid
    assert found["command"].startswith(f"{sys.executable} -c import ctypes, json")
    assert "\n" not in found["command"]


def test_nobody_holds_what_is_free_or_missing(lock: FileLock, path: str) -> None:
    assert holder(path) is None
    assert lock.acquire(0, note="work")
    lock.release()
    assert holder(path) is None
    assert holder(os.path.dirname(path)) is None


@linux_only
@pytest.mark.parametrize("note", ["", "mine"])
def test_the_note_of_a_killed_holder_is_not_taken_for_the_next_ones(
    lock: FileLock, path: str, track: Tracker, note: str
) -> None:
    child = holding(track, path, "theirs " * 50)
    child.kill()
    child.wait()
    assert lock.acquire(0, note=note)
    found = holder(path)
    assert found is not None
    assert found["pid"] == os.getpid()
    assert "theirs" not in found["command"]


@linux_only
@pytest.mark.parametrize("torn", ['{"pid": 1, "comm', "[]", "null", "\0\0\0", "\n\n"])
def test_a_torn_note_hides_neither_lock_nor_holder(lock: FileLock, path: str, torn: str) -> None:
    assert lock.acquire(0)
    with open(path, "a") as file:
        file.write(torn)
    found = holder(path)
    assert found is not None
    assert found["pid"] == os.getpid()
    assert not is_free(path)


def test_where_the_kernel_keeps_no_table_the_note_counts_while_its_writer_lives() -> None:
    note = lockholder.decode_note(b"heading\n" + lockholder.encode_note("work", 5.0))
    assert note is not None
    assert (note["command"], note["since"]) == ("work", 5.0)
    assert decode_identity(note["identity"]) == own_identity()
    assert lockholder._lives(note)
    gone = dict(note["identity"]) | {"boot_id": "another"}
    assert not lockholder._lives(note | {"identity": gone})
    assert not lockholder._lives(note | {"identity": None})
    assert not lockholder._lives({})


def test_a_full_disk_is_no_reason_not_to_lock() -> None:
    require_engine("namespaces")
    source = (
        _TOOLS
        + """
with open(os.path.dirname(sys.argv[1]) + "/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(bytes(4096)):
            pass
    except OSError as error:
        assert error.errno == errno.ENOSPC
other = FileLock(sys.argv[1])
first = lock.acquire(0, note="work"), other.acquire(0), holder(sys.argv[1])["pid"] == os.getpid()
lock.release()
say([*first, other.acquire(0, note="more"), lock.acquire(0)])
"""
    )
    small = 'mount -t tmpfs -o size=16k none /mnt && exec "$@" /mnt/some.lock'
    argv = ["unshare", "-m", "sh", "-c", small, "sh", *program(source)]
    assert said(argv) == [True, False, True, True, False]
