"""Many processes, killed ones, forked ones and a full disk: nothing torn, nothing doubled."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import RegistryError
from corral.model.environment import Claim, ClaimKind
from corral.store import claims, journal
from corral.store.registry import Registry
from support.programs import program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.processes import Tracker

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")


@pytest.fixture
def registry(state_dir: Path) -> Iterator[Registry]:
    with Registry.open(str(state_dir)) as registry:
        yield registry


def port(value: int, name: str = "web", environment: str = "env-1") -> Claim:
    return Claim(ClaimKind.PORT, "tcp", str(value), name, environment, None, "own-1", 5.0)


def take(registry: Registry, value: int) -> None:
    with registry.write() as conn:
        assert claims.take(conn, port(value))


def ports(registry: Registry) -> set[str]:
    with registry.read() as conn:
        return claims.taken_values(conn, ClaimKind.PORT)


_CLAIMANT = """
from corral.model.environment import Claim, ClaimKind
from corral.store import claims
from corral.store.registry import Registry

where, marks, me, turns = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
registry = Registry.open(where)
say()
sys.stdin.readline()
for turn in range(turns):
    with registry.write() as conn:
        taken = claims.taken_values(conn, ClaimKind.PORT, "tcp")
        number = next(str(n) for n in range(22000, 32000) if str(n) not in taken)
        assert claims.take(conn, Claim(ClaimKind.PORT, "tcp", number, "web", me, None, me, 1.0))
    # Only one at a time has the file of its port: a second one ends without its last word.
    os.close(os.open(f"{marks}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    os.unlink(f"{marks}/{number}")
    with registry.write() as conn:
        assert claims.release(conn, ClaimKind.PORT, "tcp", number, environment=me)
registry.close()
say("done")
"""


def test_fifty_processes_claim_and_release_at_once_without_a_duplicate(
    registry: Registry, state_dir: Path, private_root: Path, track: Tracker
) -> None:
    marks = private_root / "marks"
    marks.mkdir()
    take(registry, 22000)
    children = [
        started(
            track, [*program(_CLAIMANT), str(state_dir), str(marks), f"env-{n}", "6"], stdin=-1
        )[0]
        for n in range(50)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
    for child in children:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline()) == "done"
    assert ports(registry) == {"22000"}


_WRITER = """
from corral.model.environment import Claim, ClaimKind
from corral.store import claims, journal
from corral.store.registry import Registry

where, start = sys.argv[1], int(sys.argv[2])
registry = Registry.open(where)
for number in range(start, start + 5_000):
    with registry.write() as conn:
        # Three rows that belong together, of two tables.
        for part in "abc":
            claims.take(conn, Claim(ClaimKind.PORT, part, str(number), "w", "e", None, "w", 1.0))
        journal.append(conn, at=1.0, action="claimed", name=str(number), detail="x" * 3000)
    os.write(1, b"%d\\n" % number)
"""


def test_a_killed_writer_leaves_no_torn_row_and_the_next_one_proceeds_at_once(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    dice = random.Random(7)
    committed: list[str] = []
    for turn in range(12):
        argv = [*program(_WRITER), str(state_dir), str(1 + turn * 5_000)]
        child = track.spawn(argv, stdout=subprocess.PIPE)
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(dice.random() * 0.03)  # the moment of death is what is tried out
        child.kill()
        committed += [first.decode().strip(), *child.stdout.read().decode().split()]
        begun = time.monotonic()
        take(registry, 1 + turn)
        assert time.monotonic() - begun < 2
    with registry.read() as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        parts = [claims.taken_values(conn, ClaimKind.PORT, part) for part in "abc"]
        lines = {line.name for line in journal.since(conn, 0.0)}
        assert claims.all_(conn)[1] == []
    assert parts[0] == parts[1] == parts[2] == lines
    # What a writer had said to be done is there, and at most the one that it was about to say.
    assert set(committed) <= lines
    assert len(lines) <= len(committed) + 12


def test_readers_are_never_disturbed_by_writers_that_come_go_and_are_killed(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    take(registry, 0)
    registry.close()
    over = threading.Event()

    def look(seen: list[int]) -> None:
        while not over.is_set():
            with Registry.open(str(state_dir)) as own, own.read() as conn:
                parts = [claims.taken_values(conn, ClaimKind.PORT, part) for part in "abc"]
            seen.append(len(parts[0]) if parts[0] == parts[1] == parts[2] else -1)

    sights: list[list[int]] = [[], []]
    readers = [threading.Thread(target=look, args=(seen,)) for seen in sights]
    for reader in readers:
        reader.start()
    for turn in range(5):
        argv = [*program(_WRITER), str(state_dir), str(turn * 100_000)]
        child = track.spawn(argv, stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(10):
            child.stdout.readline()
        child.kill()
    over.set()
    for reader, seen in zip(readers, sights, strict=True):
        reader.join()
        assert seen == sorted(seen)
        assert seen[0] >= 0
    with registry.read() as conn:
        assert len(claims.taken_values(conn, ClaimKind.PORT, "c")) >= 50


_COMERS = """
from corral.model.environment import Claim, ClaimKind
from corral.store import claims
from corral.store.registry import Registry
for turn in range(8):
    with Registry.open(sys.argv[1]) as registry:
        with registry.write() as conn:
            value = f"{sys.argv[2]}{turn}"
            assert claims.take(conn, Claim(ClaimKind.PORT, "t", value, "w", "e", None, "w", 1.0))
        with registry.read() as conn:
            assert claims.find(conn, ClaimKind.PORT, "t", value)
"""


def test_processes_that_open_and_close_all_the_time_lose_nothing(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    # Whoever closes last folds the log into the database and removes it.
    children = [track.spawn([*program(_COMERS), str(state_dir), str(n)]) for n in range(1, 7)]
    for child in children:
        assert child.wait(60) == 0
    assert ports(registry) == {f"{n}{turn}" for n in range(1, 7) for turn in range(8)}


def _in_child(work: Callable[[], int | None]) -> int:
    """The exit status of a forked child that does this."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = work() or 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_parent_and_forked_child_both_go_on(registry: Registry) -> None:
    take(registry, 1)

    def work() -> None:
        assert ports(registry) == {"1"}
        take(registry, 2)
        registry.close()

    assert _in_child(work) == 0
    take(registry, 3)
    assert _in_child(lambda: take(registry, 4)) == 0
    assert ports(registry) == {"1", "2", "3", "4"}
    with registry.read() as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_log_that_a_forked_child_uses_is_not_removed_by_its_parent(registry: Registry) -> None:
    # A child that inherited SQLite's notes would believe in locks that only its parent has; the
    # parent, closing last, would then remove the log that the child goes on writing to.
    take(registry, 1)
    told, tell = os.pipe()
    ready, say = os.pipe()

    def work() -> None:
        os.close(tell)
        take(registry, 2)
        os.write(say, b"x")
        os.read(told, 1)
        take(registry, 3)

    thread = threading.Thread(target=lambda: statuses.append(_in_child(work)))
    statuses: list[int] = []
    thread.start()
    os.read(ready, 1)
    assert ports(registry) == {"1", "2"}
    registry.close()
    os.close(tell)
    thread.join()
    assert statuses == [0]
    assert ports(registry) == {"1", "2", "3"}
    for end in (told, ready, say):
        os.close(end)


def test_a_child_forked_within_a_transaction_can_neither_finish_nor_harm_it(
    registry: Registry, state_dir: Path
) -> None:
    take(registry, 1)

    def work() -> int:
        try:
            take(registry, 9)
        except RegistryError:
            return 7
        return 0

    pid = None
    with registry.write() as conn:
        claims.take(conn, port(2))
        pid = os.fork()
        if pid:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            claims.take(conn, port(3))
    if pid == 0:
        os._exit(work())
    with Registry.open(str(state_dir)) as other:
        assert ports(other) == {"1", "2", "3"}
    take(registry, 4)


def test_a_fork_waits_for_the_transactions_of_other_threads(registry: Registry) -> None:
    inside = threading.Event()

    def write() -> None:
        with registry.write() as conn:
            claims.take(conn, port(1))
            inside.set()
            eventually(lambda: forking, 5)
            claims.take(conn, port(2))

    forking: list[bool] = []
    thread = threading.Thread(target=write)
    thread.start()
    inside.wait(10)
    forking.append(True)
    assert _in_child(lambda: take(registry, 3)) == 0
    thread.join()
    assert ports(registry) == {"1", "2", "3"}


_FULL = """
from corral.errors import CorralError
from corral.model.environment import Claim, ClaimKind
from corral.store import claims, journal, spool
from corral.store.registry import Registry

where = sys.argv[1]
def done(registry):
    with registry.read() as conn:
        whole = conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        parts = [claims.taken_values(conn, ClaimKind.PORT, part) for part in "ab"]
        lines = {line.name for line in journal.since(conn, 0.0)}
    return [whole, parts[0] == parts[1] == lines, len(lines)]

with open(where + "/ballast", "wb") as full:
    full.write(b"x" * 600_000)
registry, told, number = Registry.open(where + "/state"), None, 0
while told is None:
    try:
        with registry.write() as conn:
            for part in "ab":
                claim = Claim(ClaimKind.PORT, part, str(number), "w", "e", None, "w", 1.0)
                claims.take(conn, claim)
            journal.append(conn, at=1.0, action="a", name=str(number), detail="x" * 20_000)
        number += 1
    except CorralError as error:
        told = [type(error).__name__, error.message, error.remedy]
full = open(where + "/ballast", "ab", buffering=0)
try:
    while full.write(b"x" * 512):
        pass
except OSError:
    pass
entry = {"entry": "event", "at": 1.0, "action": "hook"}
try:
    spool.append(where + "/state", entry)
    spooled = None
except CorralError as error:
    spooled = [type(error).__name__, error.message, error.remedy]
left = sorted(os.listdir(where + "/state/spool"))
full_state = done(registry)
full.close()
os.unlink(where + "/ballast")
with registry.write() as conn:
    conn.execute("DELETE FROM journal")
    conn.execute("DELETE FROM claim")
say([told, number, spooled, left, full_state, done(registry)])
"""
_SMALL_DISK = 'mount -t tmpfs -o size=1300k tmpfs "$1" && shift && exec "$@"'


def _on_a_small_disk(private_root: Path, source: str) -> Any:
    """What a program says that gets the mount point of a disk of its own, with little room."""
    disk = str(private_root / "disk")
    os.mkdir(disk)
    return said(["unshare", "-m", "sh", "-c", _SMALL_DISK, "sh", disk, *program(source), disk])


@as_root
def test_a_full_disk_is_a_clear_error_and_nothing_is_half_written(private_root: Path) -> None:
    told, number, spooled, left, full, after = _on_a_small_disk(private_root, _FULL)
    assert told[0] == "RegistryError"
    assert "full" in told[1] or "I/O" in told[1]
    assert "space" in told[2] or "full" in told[2]
    assert spooled[0] in {"FileWriteError", "StateDirectoryError"}
    assert "space" in spooled[2]
    assert left == []
    assert full == [True, True, number]
    assert after == [True, True, 0]


_NO_ROOM = """
from corral.errors import CorralError
from corral.store.registry import Registry
where = sys.argv[1]
full = open(where + "/ballast", "wb", buffering=0)
try:
    while full.write(b"x" * 4096):
        pass
except OSError:
    pass
try:
    with Registry.open(where + "/state").write():
        say("written")
except CorralError as error:
    full.close()
    os.unlink(where + "/ballast")
    with Registry.open(where + "/state").write():
        pass
    say([type(error).__name__, error.remedy])
"""


@as_root
def test_a_disk_that_is_full_from_the_start_is_a_clear_error(private_root: Path) -> None:
    told, remedy = _on_a_small_disk(private_root, _NO_ROOM)
    assert told in {"RegistryError", "StateDirectoryError"}
    assert "space" in remedy or "full" in remedy


_INTERRUPTED = """
from corral.store.registry import Registry
signal.signal(signal.SIGINT, signal.default_int_handler)
registry = Registry.open(sys.argv[1])
say()
try:
    with registry.write():
        say("in")
except KeyboardInterrupt:
    say("interrupted")
    with registry.write():
        say("again")
sleep()
"""


def test_an_interrupt_while_waiting_leaves_the_gate_as_it_was(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    take(registry, 1)
    with registry.write():
        child, _ = started(track, [*program(_INTERRUPTED), str(state_dir)])
        assert child.stdout is not None
        if sys.platform == "linux":  # it stands in line
            eventually(lambda: len(os.listdir(f"/proc/{child.pid}/task")) > 1)
        child.send_signal(signal.SIGINT)
        assert json.loads(child.stdout.readline()) == "interrupted"
    assert json.loads(child.stdout.readline()) == "again"
    take(registry, 2)
