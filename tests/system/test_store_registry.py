"""The registry as one process sees it: consistent, shared by versions, and clear when broken."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from typing import TYPE_CHECKING

import pytest

from corral.errors import HeldError, RegistryError, RegistryTooNewError, StateDirectoryError
from corral.model.environment import Claim, ClaimKind
from corral.store import claims, journal, schema, trust
from corral.store.registry import Registry
from corral.store.schema import Schema
from support.programs import program, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker


def port(value: int, environment: str = "env-1") -> Claim:
    return Claim(ClaimKind.PORT, "tcp", str(value), f"p{value}", environment, None, "own-1", 5.0)


def ports(registry: Registry) -> set[str]:
    with registry.read() as conn:
        return claims.taken_values(conn, ClaimKind.PORT)


def take(registry: Registry, value: int) -> None:
    with registry.write() as conn:
        assert claims.take(conn, port(value))


@pytest.fixture
def registry(state_dir: Path) -> Iterator[Registry]:
    with Registry.open(str(state_dir)) as registry:
        yield registry


def test_reading_what_is_not_there_finds_nothing_and_creates_nothing(
    registry: Registry, state_dir: Path
) -> None:
    assert ports(registry) == set()
    with registry.read() as conn:
        assert claims.all_(conn) == ([], [])
    assert not state_dir.exists()
    state_dir.mkdir(mode=0o700)
    assert ports(registry) == set()
    assert list(state_dir.iterdir()) == []


def test_an_empty_file_reads_as_an_empty_registry_and_can_be_written(
    registry: Registry, state_dir: Path
) -> None:
    state_dir.mkdir(mode=0o700)
    file = state_dir / "registry.sqlite3"
    file.touch(mode=0o600)
    assert ports(registry) == set()
    assert file.stat().st_size == 0
    take(registry, 1)
    assert ports(registry) == {"1"}


def test_what_was_written_is_there_for_everybody(registry: Registry, state_dir: Path) -> None:
    take(registry, 1)
    with Registry.open(str(state_dir)) as other:
        assert ports(other) == {"1"}
        take(other, 2)
    assert ports(registry) == {"1", "2"}


def test_its_files_are_its_users_alone(registry: Registry, state_dir: Path) -> None:
    previous = os.umask(0)
    try:
        take(registry, 1)
    finally:
        os.umask(previous)
    assert {file.stat().st_mode & 0o777 for file in state_dir.iterdir()} == {0o600}


def test_it_is_durable_and_has_a_write_ahead_log(registry: Registry) -> None:
    with registry.write() as conn:
        assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
        assert conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_only_what_need_not_outlive_the_boot_is_not_synced(registry: Registry) -> None:
    with registry.write(durable=False) as conn:
        assert conn.execute("PRAGMA synchronous").fetchone() == (1,)
        claims.take(conn, port(1))
    with registry.write() as conn:
        assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
    assert ports(registry) == {"1"}


def test_an_error_in_the_block_changes_nothing(registry: Registry) -> None:
    take(registry, 1)

    def fail() -> None:
        with registry.write() as conn:
            claims.take(conn, port(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ports(registry) == {"1"}
    take(registry, 3)


def test_a_wrong_statement_changes_nothing_and_is_told(registry: Registry) -> None:
    def fail() -> None:
        with registry.write() as conn:
            claims.take(conn, port(2))
            conn.execute("INSERT INTO claim VALUES (1)")

    with pytest.raises(RegistryError):
        fail()
    assert ports(registry) == set()


def test_nothing_can_be_written_while_reading(registry: Registry) -> None:
    take(registry, 1)
    with pytest.raises(RegistryError), registry.read() as conn:
        claims.take(conn, port(2))
    assert ports(registry) == {"1"}
    take(registry, 2)


def test_nothing_can_be_written_while_reading_what_is_not_there(registry: Registry) -> None:
    with pytest.raises(RegistryError), registry.read() as conn:
        claims.take(conn, port(2))


def test_a_reading_within_a_transaction_sees_it(registry: Registry) -> None:
    with registry.write() as conn:
        claims.take(conn, port(1))
        assert ports(registry) == {"1"}
        claims.take(conn, port(2))
    with registry.read() as conn, registry.read() as again:
        assert conn is again


def test_a_transaction_within_another_is_refused(registry: Registry) -> None:
    with registry.write() as conn:
        claims.take(conn, port(1))
        with pytest.raises(RegistryError, match="already"), registry.write():
            pass
        with pytest.raises(RegistryError, match="still open"):
            registry.close()
        claims.take(conn, port(2))
    assert ports(registry) == {"1", "2"}
    with pytest.raises(RegistryError), registry.read(), registry.write():
        pass


def test_threads_take_turns(registry: Registry) -> None:
    take(registry, 0)

    def work(number: int) -> None:
        for turn in range(5):
            take(registry, number * 100 + turn)
            assert str(number * 100 + turn) in ports(registry)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ports(registry)) == 21


def test_a_thread_does_not_wait_for_another_one_for_ever(registry: Registry) -> None:
    inside, over = threading.Event(), threading.Event()

    def dwell() -> None:
        with registry.write():
            inside.set()
            over.wait(10)

    thread = threading.Thread(target=dwell)
    thread.start()
    inside.wait(10)
    try:
        with pytest.raises(HeldError, match="thread"), registry.write(timeout=0.05):
            pass
    finally:
        over.set()
        thread.join()


_DWELL = """
from corral.model.environment import Claim, ClaimKind
from corral.store import claims
from corral.store.registry import Registry
with Registry.open(sys.argv[1]).write() as conn:
    claims.take(conn, Claim(ClaimKind.PORT, "tcp", "7", "web", "env-7", None, "w", 5.0))
    say()
    sys.stdin.readline()
say()
"""


def test_a_reader_passes_while_a_writer_is_at_work(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    take(registry, 1)
    writer, _ = started(track, [*program(_DWELL), str(state_dir)], stdin=-1)
    begun = time.monotonic()
    assert ports(registry) == {"1"}
    with Registry.open(str(state_dir)) as fresh:
        assert ports(fresh) == {"1"}
    assert time.monotonic() - begun < 2
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write(b"\n")
    writer.stdin.flush()
    writer.stdout.readline()
    assert ports(registry) == {"1", "7"}


def test_a_reading_stays_the_same_while_a_writer_commits(
    registry: Registry, state_dir: Path
) -> None:
    take(registry, 1)
    with Registry.open(str(state_dir)) as writer, registry.read() as conn:
        take(writer, 2)
        assert claims.taken_values(conn, ClaimKind.PORT) == {"1"}
    assert ports(registry) == {"1", "2"}


def test_a_writer_that_waits_too_long_is_told_who_writes(
    registry: Registry, state_dir: Path, track: Tracker
) -> None:
    writer, _ = started(track, [*program(_DWELL), str(state_dir)], stdin=-1)
    with pytest.raises(HeldError, match=f"process {writer.pid} "), registry.write(timeout=0.05):
        pass


def test_a_program_that_goes_round_the_gate_is_told_as_held(registry: Registry) -> None:
    take(registry, 1)
    other = sqlite3.connect(registry.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HeldError, match="another program"), registry.write(timeout=0.05):
        pass
    assert ports(registry) == {"1"}
    other.execute("ROLLBACK")
    other.close()
    take(registry, 2)


def test_a_deleted_registry_is_made_anew(registry: Registry, state_dir: Path) -> None:
    take(registry, 1)
    for file in state_dir.iterdir():
        file.unlink()
    assert ports(registry) == set()
    take(registry, 2)
    assert ports(registry) == {"2"}


def test_a_deleted_state_directory_is_made_anew(registry: Registry, state_dir: Path) -> None:
    take(registry, 1)
    for file in state_dir.iterdir():
        file.unlink()
    state_dir.rmdir()
    take(registry, 2)
    assert ports(registry) == {"2"}


def test_a_registry_that_was_put_in_its_place_is_the_one_that_counts(
    registry: Registry, state_dir: Path, private_root: Path
) -> None:
    take(registry, 1)
    registry.close()
    with Registry.open(str(private_root / "other")) as other:
        take(other, 2)
    take(registry, 3)
    os.replace(private_root / "other" / "registry.sqlite3", state_dir / "registry.sqlite3")
    for log in ("registry.sqlite3-wal", "registry.sqlite3-shm"):
        (state_dir / log).unlink()
    assert ports(registry) == {"2"}


@pytest.mark.parametrize("name", ["a b", "a?b#c%d", "a%20b", "é日本", "a\udcffb", "x'y\"z"])
def test_the_path_may_hold_any_character(private_root: Path, name: str) -> None:
    with Registry.open(str(private_root / name)) as registry:
        take(registry, 1)
        assert ports(registry) == {"1"}
    assert os.path.exists(os.path.join(private_root, name, "registry.sqlite3"))


def test_a_symlink_in_the_place_of_the_registry_is_refused(
    registry: Registry, state_dir: Path, private_root: Path
) -> None:
    with Registry.open(str(private_root / "other")) as other:
        take(other, 1)
    state_dir.mkdir(mode=0o700)
    (state_dir / "registry.sqlite3").symlink_to(private_root / "other" / "registry.sqlite3")
    with pytest.raises(RegistryError) as raised, registry.read():
        pass
    assert raised.value.remedy
    with pytest.raises(RegistryError), registry.write():
        pass


def test_a_state_directory_that_others_can_write_is_refused_for_reading_too(
    registry: Registry, state_dir: Path
) -> None:
    take(registry, 1)
    registry.close()
    state_dir.chmod(0o770)
    with pytest.raises(StateDirectoryError), registry.read():
        pass
    with pytest.raises(StateDirectoryError), registry.write():
        pass


@pytest.mark.parametrize("content", [b"no database at all" * 500, bytes(8192)])
def test_a_file_that_is_no_database_is_told_with_a_remedy_and_left(
    registry: Registry, state_dir: Path, content: bytes
) -> None:
    state_dir.mkdir(mode=0o700)
    file = state_dir / "registry.sqlite3"
    file.write_bytes(content)
    for use in (registry.read, registry.write):
        with pytest.raises(RegistryError) as raised, use():
            pass
        assert "aside" in raised.value.remedy
        assert str(file) in raised.value.message
    assert file.read_bytes() == content


def test_a_damaged_database_is_told_with_a_remedy(registry: Registry, state_dir: Path) -> None:
    for value in range(200):
        take(registry, value)
    registry.close()
    file = state_dir / "registry.sqlite3"
    content = bytearray(file.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    file.write_bytes(content)
    with pytest.raises(RegistryError, match="malformed") as raised:
        ports(registry)
    assert "aside" in raised.value.remedy


def test_another_programs_database_is_left_untouched(registry: Registry, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    file = state_dir / "registry.sqlite3"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    before = file.read_bytes()
    for use in (registry.read, registry.write):
        with pytest.raises(RegistryError, match="another program's") as raised, use():
            pass
        assert raised.value.remedy
    assert file.read_bytes() == before


ADDED = (
    "ALTER TABLE claim ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",
    "CREATE TABLE dream (id TEXT PRIMARY KEY) WITHOUT ROWID",
    "INSERT INTO dream VALUES ('sheep')",
)
NEWER = Schema((*schema.CURRENT.steps, ADDED), min_reader=1)
STRICT = Schema((*schema.CURRENT.steps, ADDED), min_reader=2)


@pytest.fixture
def newer(state_dir: Path) -> Iterator[Registry]:
    with Registry(str(state_dir), known=NEWER) as newer:
        yield newer


def test_an_older_corral_works_with_a_newer_registry(registry: Registry, newer: Registry) -> None:
    take(newer, 1)
    assert ports(registry) == {"1"}
    take(registry, 2)
    with newer.read() as conn:
        assert claims.all_(conn)[0] == [port(1), port(2)]
        assert {colour for (colour,) in conn.execute("SELECT colour FROM claim")} == {"red"}
        assert schema.version_of(conn, NEWER) == 2


def test_an_older_corral_refuses_a_registry_that_asks_for_a_newer_one(
    registry: Registry, state_dir: Path
) -> None:
    with Registry(str(state_dir), known=STRICT) as newer:
        take(newer, 1)
    file = state_dir / "registry.sqlite3"
    before = file.read_bytes()
    for use in (registry.read, registry.write):
        with pytest.raises(RegistryTooNewError) as raised, use():
            pass
        assert "upgrade" in raised.value.remedy
    registry.close()
    assert file.read_bytes() == before
    assert not [f for f in state_dir.iterdir() if f.suffix in {".sqlite3-wal", ".sqlite3-shm"}]


@pytest.mark.parametrize("value", ["", "soon", "2.5", None])
def test_a_minimum_that_is_not_understood_is_refused(
    registry: Registry, newer: Registry, value: str | None
) -> None:
    with newer.write() as conn:
        conn.execute("DELETE FROM meta")
        if value is not None:
            conn.execute("INSERT INTO meta VALUES ('min_reader', ?)", (value,))
    with pytest.raises(RegistryTooNewError), registry.read():
        pass


def test_an_older_registry_is_upgraded_by_the_next_writer_and_keeps_all(
    registry: Registry, newer: Registry
) -> None:
    take(registry, 1)
    take(newer, 2)
    with newer.read() as conn:
        assert conn.execute("SELECT id FROM dream").fetchall() == [("sheep",)]
        assert claims.all_(conn)[0] == [port(1), port(2)]
    assert ports(registry) == {"1", "2"}


def test_a_reader_of_an_older_registry_changes_nothing(registry: Registry, newer: Registry) -> None:
    take(registry, 1)
    with newer.read() as conn:
        assert conn.execute("SELECT id FROM dream").fetchall() == [("sheep",)]
        assert conn.execute("SELECT value, colour FROM claim").fetchall() == [("1", "red")]
    with registry.read() as conn:
        assert schema.version_of(conn) == 1
        with pytest.raises(sqlite3.OperationalError):
            conn.execute("SELECT * FROM dream")


def test_an_upgrade_that_fails_leaves_the_older_registry(
    registry: Registry, state_dir: Path
) -> None:
    take(registry, 1)
    wrong = Schema((*schema.CURRENT.steps, (*ADDED, "CREATE TABLE dream (id)")), min_reader=2)
    with Registry(str(state_dir), known=wrong) as newer:
        with pytest.raises(RegistryError), newer.write():
            pass
        assert ports(registry) == {"1"}
        with registry.read() as conn:
            assert schema.version_of(conn) == 1


def test_two_versions_write_in_turns(registry: Registry, newer: Registry) -> None:
    for turn in range(6):
        take((registry, newer)[turn % 2], turn)
    assert ports(registry) == ports(newer) == {"0", "1", "2", "3", "4", "5"}


def test_the_journal_keeps_its_newest_lines(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LIMIT", 5)
    with registry.write() as conn:
        for number in range(8):
            journal.append(conn, at=float(number), action="removed", name=f"n{number}")
    with registry.read() as conn:
        assert [line.name for line in journal.since(conn, 0.0, 100)] == [
            "n3",
            "n4",
            "n5",
            "n6",
            "n7",
        ]
        assert [line.name for line in journal.since(conn, 5.0, 2)] == ["n6", "n7"]
        assert journal.since(conn, 9.0, 2) == []


def test_only_the_content_that_was_trusted_last_is_trusted(registry: Registry) -> None:
    with registry.write() as conn:
        assert not trust.is_trusted(conn, "/r/corral.toml", "aa")
        trust.trust(conn, "/r/corral.toml", "aa", 1.0)
        assert trust.is_trusted(conn, "/r/corral.toml", "aa")
        assert not trust.is_trusted(conn, "/r/corral.toml", "ab")
        assert not trust.is_trusted(conn, "/other/corral.toml", "aa")
        trust.trust(conn, "/r/corral.toml", "bb", 2.0)
        assert not trust.is_trusted(conn, "/r/corral.toml", "aa")
