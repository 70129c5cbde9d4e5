"""The spool: what could not pass the gate is applied exactly once, and nothing else disturbs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import CorralError, InvalidValueError, StateDirectoryError
from corral.store import journal, owners, spool
from corral.store.registry import Registry
from corral.store.spooled import Line, Release
from support.programs import program, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corral.model.owner import Owner
    from support.processes import Tracker

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")


@pytest.fixture
def registry(state_dir: Path) -> Iterator[Registry]:
    """A registry with two owners of one live epoch each."""
    with Registry.open(str(state_dir)) as registry:
        with registry.write() as conn:
            for owner in ("own-1", "own-2"):
                owners.mint(conn, owner, implicit_of=None, parent=None, now=1.0)
                owners.open_epoch(
                    conn,
                    owner=owner,
                    environment=None,
                    agent="a",
                    boot_id="b",
                    anchor=None,
                    now=2.0,
                )
        yield registry


@pytest.fixture
def directory(state_dir: Path) -> Path:
    return state_dir / "spool"


def release(owner: str = "own-1", epoch: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"entry": "release", "owner": owner, "epoch": epoch, "at": 5.0, "why": "x", **fields}


def event(name: str) -> dict[str, Any]:
    return {"entry": "event", "at": 5.0, "action": "hook", "name": name}


def events(registry: Registry) -> list[str]:
    with registry.read() as conn:
        return [line.name for line in journal.since(conn, 0.0)]


def released(registry: Registry) -> list[str]:
    with registry.read() as conn:
        return [owner.id for owner in owners.all_(conn)[0] if _over(owner)]


def _over(owner: Owner) -> bool:
    return all(epoch.released_at is not None for epoch in owner.epochs)


def write(registry: Registry) -> None:
    with registry.write():
        pass


def test_an_entry_is_on_disk_for_its_user_alone(state_dir: Path, directory: Path) -> None:
    path = spool.append(str(state_dir), release())
    assert os.path.dirname(path) == str(directory)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    with open(path) as file:
        assert json.load(file) == release()
    assert len(list(directory.iterdir())) == 1


def test_the_next_writer_takes_entries_in_by_their_order(
    registry: Registry, state_dir: Path, directory: Path
) -> None:
    for name in ("a", "b", "c"):
        spool.append(str(state_dir), event(name))
    spool.append(str(state_dir), release())
    assert (events(registry), released(registry)) == ([], [])
    write(registry)
    assert (events(registry), released(registry)) == (["a", "b", "c"], ["own-1"])
    assert list(directory.iterdir()) == []


def test_an_entry_is_seen_before_it_is_taken_in(registry: Registry, state_dir: Path) -> None:
    spool.append(str(state_dir), release())
    spool.append(str(state_dir), event("a"))
    kinds = [type(entry) for entry in spool.pending(str(state_dir))]
    assert kinds == [Release, Line]
    with registry.read() as conn:
        known = tuple(owners.all_(conn)[0])
    overlaid = spool.overlay(str(state_dir), known)
    assert [(owner.id, _over(owner)) for owner in overlaid] == [("own-1", True), ("own-2", False)]
    assert overlaid[0].epochs[0].released_at == 5.0
    assert overlaid[0].epochs[0].released_why == "x"


def test_a_release_is_of_one_epoch_or_of_all(registry: Registry, state_dir: Path) -> None:
    with registry.write() as conn:
        second = owners.open_epoch(
            conn, owner="own-1", environment=None, agent="a", boot_id="b", anchor=None, now=3.0
        )
    spool.append(str(state_dir), release(epoch=second.id))
    with registry.read() as conn:
        known = tuple(owners.all_(conn)[0])
    (overlaid, _) = spool.overlay(str(state_dir), known)
    assert [epoch.released_at for epoch in overlaid.epochs] == [None, 5.0]
    write(registry)
    assert released(registry) == []
    spool.append(str(state_dir), release())
    write(registry)
    assert released(registry) == ["own-1"]
    spool.append(str(state_dir), release("own-nobody"))
    write(registry)
    assert released(registry) == ["own-1"]


@pytest.mark.parametrize("entry", [{}, {"entry": "dream"}, {"entry": "release"}, {"entry": None}])
def test_what_nobody_could_read_is_not_written(
    state_dir: Path, directory: Path, entry: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValueError):
        spool.append(str(state_dir), entry)
    assert not directory.exists()


def test_a_transaction_that_fails_leaves_the_entries(
    registry: Registry, state_dir: Path, directory: Path
) -> None:
    spool.append(str(state_dir), event("a"))

    def fail() -> None:
        with registry.write():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(list(directory.iterdir())) == 1
    write(registry)
    assert events(registry) == ["a"]


_KILLED = """
from corral.store import spool
from corral.store.registry import Registry
where, point = sys.argv[1:]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if point == "before the commit":
    with Registry.open(where).write():
        die()
spool.discard = die
with Registry.open(where).write():
    pass
"""


@pytest.mark.parametrize("point", ["before the commit", "before the file goes"])
def test_an_entry_is_applied_once_also_when_the_writer_is_killed(
    registry: Registry, state_dir: Path, directory: Path, point: str
) -> None:
    for name in ("a", "b"):
        spool.append(str(state_dir), event(name))
    for _ in range(2):
        pid = os.spawnv(os.P_NOWAIT, sys.executable, [*program(_KILLED), str(state_dir), point])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        assert len(list(directory.iterdir())) == 2
        assert events(registry) == ([] if point == "before the commit" else ["a", "b"])
    spool.append(str(state_dir), event("c"))
    write(registry)
    write(registry)
    assert events(registry) == ["a", "b", "c"]
    assert list(directory.iterdir()) == []


def test_what_was_noted_is_forgotten_when_its_file_is_gone(
    registry: Registry, state_dir: Path
) -> None:
    for name in ("a", "b", "c"):
        spool.append(str(state_dir), event(name))
        write(registry)
    with registry.read() as conn:
        assert len(conn.execute("SELECT id FROM spooled").fetchall()) == 1


_CROWD = """
from corral.store import spool
from corral.store.registry import Registry
where, number = sys.argv[1:]
with Registry.open(where) as registry:
    for turn in range(20):
        entry = {"entry": "event", "at": 5.0, "action": "hook", "name": f"{number}-{turn}"}
        spool.append(where, entry)
        if turn % 4 == 0:
            with registry.write():
                pass
say()
"""


def test_many_that_append_and_take_in_at_once_lose_and_double_nothing(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    children = [
        track.spawn([*program(_CROWD), str(state_dir), str(number)], stdout=-1)
        for number in range(6)
    ]
    for child in children:
        assert child.wait(60) == 0
    write(registry)
    expected = sorted(f"{number}-{turn}" for number in range(6) for turn in range(20))
    assert sorted(events(registry)) == expected


TORN: dict[str, bytes] = {
    "empty": b"",
    "torn": b'{"entry": "event", "at": 5.0, "act',
    "list": b"[]",
    "null": b"null",
    "binary": b"\xff\xfe\x00",
    "no kind": b'{"at": 5.0}',
    "half": b'{"entry": "release", "at": 5.0, "why": "x"}',
    "deep": b"[" * 50_000,
    "long": b'{"entry": "event", "at": 5.0, "action": "' + b"x" * 70_000 + b'"}',
}


@pytest.mark.parametrize("content", TORN.values(), ids=TORN)
def test_a_torn_entry_is_kept_shown_and_in_nobodys_way(
    registry: Registry, state_dir: Path, directory: Path, content: bytes
) -> None:
    spool.append(str(state_dir), event("a"))
    torn = directory / "00000000000000000001-torn.json"
    torn.write_bytes(content)
    assert [(b.where, b.id) for b in spool.bad(str(state_dir))] == [("spool", torn.name)]
    assert len(spool.pending(str(state_dir))) == 1
    write(registry)
    write(registry)
    assert events(registry) == ["a"]
    assert [b.id for b in spool.bad(str(state_dir))] == [f"bad/{torn.name}"]
    assert (directory / "bad" / torn.name).read_bytes() == content
    assert sorted(p.name for p in directory.iterdir()) == ["bad"]


def test_an_entry_of_a_newer_corral_waits_for_it(
    registry: Registry, state_dir: Path, directory: Path
) -> None:
    spool.append(str(state_dir), event("a"))
    newer = directory / "00000000000000000001-newer.json"
    newer.write_text('{"entry": "dream", "at": 5.0}')
    write(registry)
    assert events(registry) == ["a"]
    assert newer.exists()
    assert [b.id for b in spool.bad(str(state_dir))] == [newer.name]


def test_a_symlink_is_not_followed(
    registry: Registry, state_dir: Path, directory: Path, private_root: Path
) -> None:
    spool.append(str(state_dir), event("a"))
    secret = private_root / "secret"
    secret.write_text(json.dumps(event("secret")))
    (directory / "link.json").symlink_to(secret)
    write(registry)
    assert events(registry) == ["a"]
    assert secret.exists()
    assert len(spool.bad(str(state_dir))) == 1


def test_a_pipe_is_not_waited_for(registry: Registry, state_dir: Path, directory: Path) -> None:
    spool.append(str(state_dir), event("a"))
    os.mkfifo(directory / "pipe.json")
    (directory / "dir.json").mkdir()
    begun = time.monotonic()
    write(registry)
    assert time.monotonic() - begun < 2
    assert events(registry) == ["a"]
    assert len(spool.bad(str(state_dir))) == 2


@as_root
def test_another_users_file_is_not_believed(registry: Registry, state_dir: Path) -> None:
    os.chown(spool.append(str(state_dir), event("a")), 12345, 12345)
    write(registry)
    assert events(registry) == []
    assert len(spool.bad(str(state_dir))) == 1


def test_foreign_names_are_shown_and_left(
    registry: Registry, state_dir: Path, directory: Path
) -> None:
    spool.append(str(state_dir), event("a"))
    names = ["README", "x.json.txt", "日本", "a\udcff"]
    for name in names:
        (directory / name).write_text(json.dumps(event("foreign")))
    write(registry)
    assert events(registry) == ["a"]
    assert sorted(b.id for b in spool.bad(str(state_dir))) == sorted(names)
    assert all((directory / name).exists() for name in names)


def test_what_is_still_being_written_is_no_entry_and_goes_when_it_is_old(
    registry: Registry, state_dir: Path, directory: Path
) -> None:
    spool.append(str(state_dir), event("a"))
    fresh, old = directory / ".corral-1-aa.tmp", directory / ".corral-2-bb.tmp"
    for file in (fresh, old):
        file.write_text('{"entry"')
    os.utime(old, (1.0, 1.0))
    assert spool.bad(str(state_dir)) == []
    write(registry)
    assert fresh.exists()
    assert not old.exists()


def _symlink(directory: Path) -> None:
    other = directory.with_name("other")
    other.mkdir(mode=0o700)
    (other / "1.json").write_text(json.dumps(event("foreign")))
    directory.symlink_to(other)


def _file(directory: Path) -> None:
    directory.write_text("")


@pytest.mark.parametrize("prepare", [_symlink, _file])
def test_what_stands_in_the_place_of_the_spool_stops_no_writer(
    registry: Registry, state_dir: Path, directory: Path, prepare: Any
) -> None:
    prepare(directory)
    write(registry)
    assert events(registry) == []
    assert spool.pending(str(state_dir)) == []
    assert [b.where for b in spool.bad(str(state_dir))] == ["spool"]
    with pytest.raises(StateDirectoryError):
        spool.append(str(state_dir), event("a"))


def test_without_a_spool_nothing_waits_and_nothing_is_made(state_dir: Path) -> None:
    assert spool.pending(str(state_dir)) == []
    assert spool.bad(str(state_dir)) == []
    assert spool.overlay(str(state_dir), ()) == ()
    assert not state_dir.exists()


_WRITER = """
from corral.store.registry import Registry
with Registry.open(sys.argv[1]).write():
    say()
    sleep()
"""


def test_an_entry_can_be_written_while_somebody_holds_the_gate(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    holder, _ = started(track, [*program(_WRITER), str(state_dir)])
    with pytest.raises(CorralError), registry.write(timeout=0.05):
        pass
    spool.append(str(state_dir), release())
    holder.kill()
    holder.wait()
    write(registry)
    assert released(registry) == ["own-1"]
