"""Each table: what was written comes back, and a row that is not understood disables nothing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import InvalidValueError
from corral.kernel.clock import boot_id
from corral.model.environment import Claim, ClaimKind, Environment, Output, Place
from corral.model.owner import End
from corral.model.process import ProcessIdentity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.store import claims, environments, fences, journal, owners, records, trust
from corral.store.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from sqlite3 import Connection

ODD = "/home/me/caf\udce9/日本 'x\"; DROP TABLE claim; --\n"
PROCESS = ProcessIdentity(100, 2**40, "boot-1", 4026531836, 2**33)
UNPINNED = PROCESS._replace(pidfd_inode=None)
OTHER = ProcessIdentity(101, 2**40, "boot-1", 4026531836, None)


@pytest.fixture
def conn(state_dir: Path) -> Iterator[Connection]:
    """An open transaction of a fresh registry."""
    with Registry.open(str(state_dir)) as registry, registry.write() as conn:
        yield conn


def environment(number: int, path: str = "/w") -> Environment:
    place = Place(path, "git", "/a", "/c", "/m", "repo", "tree", False, 2049, 2**64 - 5)
    return Environment(f"env-{number}", place, f"nonce-{number}", float(number), "foundry")


def record(number: int, **fields: Any) -> Record:
    found = Record(
        id=f"rec-{number}",
        kind=Kind.PROCESS,
        backend="process",
        role="service",
        name="web",
        owner="own-1",
        session=None,
        environment="env-1",
        state=RecordState.INTENT,
        identity=(),
        creator=PROCESS,
        created_at=float(number),
        detail='{"command": ["x"]}',
    )
    return found._replace(**fields)


def claim(value: str, **fields: Any) -> Claim:
    found = Claim(ClaimKind.PORT, "tcp", value, "web", "env-1", None, "own-1", 5.0, "")
    return found._replace(**fields)


def test_an_environment_comes_back_with_an_odd_path(conn: Connection) -> None:
    first, second = environment(1, ODD), environment(2)
    environments.insert(conn, second)
    environments.insert(conn, first)
    assert environments.find(conn, "env-1") == first
    assert environments.find(conn, "env-") is None
    assert environments.all_(conn) == ([first, second], [])
    moved = first.place._replace(path="/elsewhere", is_main=True, inode=7)
    environments.update_place(conn, "env-1", moved)
    assert environments.find(conn, "env-1") == first._replace(place=moved)
    environments.delete(conn, "env-1")
    assert not environments.exists(conn, "env-1")
    assert environments.all_(conn) == ([second], [])


def test_an_id_is_taken_once(conn: Connection) -> None:
    environments.insert(conn, environment(1))
    with pytest.raises(Exception, match="UNIQUE"):
        environments.insert(conn, environment(1))


def test_outputs_are_remembered_by_path(conn: Connection) -> None:
    environments.record_output(conn, Output("env-1", ODD, "block", "aa"))
    environments.record_output(conn, Output("env-1", "/a", "file", "bb"))
    environments.record_output(conn, Output("env-2", "/a", "file", "cc"))
    environments.record_output(conn, Output("env-1", "/a", "link", "dd"))
    assert environments.outputs(conn, "env-1") == sorted(
        [Output("env-1", "/a", "link", "dd"), Output("env-1", ODD, "block", "aa")],
        key=lambda output: output.path,
    )
    environments.forget_output(conn, "env-1", ODD)
    assert [output.path for output in environments.outputs(conn, "env-1")] == ["/a"]


def test_a_claim_is_held_by_one_claimant_under_one_name(conn: Connection) -> None:
    mine = claim("22001")
    assert claims.take(conn, mine)
    assert claims.take(conn, mine._replace(worker="own-2", created_at=9.0))
    assert not claims.take(conn, mine._replace(environment="env-2"))
    assert not claims.take(conn, mine._replace(name="api"))
    assert not claims.take(conn, mine._replace(holder=PROCESS))
    assert claims.take(conn, mine._replace(scope="udp"))
    assert claims.take(conn, mine._replace(kind=ClaimKind.NAME))
    assert claims.find(conn, ClaimKind.PORT, "tcp", "22001") == mine
    assert claims.find(conn, ClaimKind.PORT, "tcp", "2200") is None


def test_a_process_holds_its_claim_also_where_its_inode_was_not_known(conn: Connection) -> None:
    held = claim("1", environment=None, holder=PROCESS)
    assert claims.take(conn, held)
    assert claims.take(conn, held._replace(holder=UNPINNED))
    assert not claims.take(conn, held._replace(holder=OTHER))
    assert not claims.take(conn, held._replace(holder=PROCESS._replace(pidfd_inode=9)))
    assert not claims.take(conn, held._replace(holder=PROCESS._replace(start_ticks=9)))
    assert claims.take(conn, held._replace(value="2"))
    assert claims.take(conn, claim("3", environment=None, holder=OTHER))
    assert [c.value for c in claims.of_holder(conn, UNPINNED)] == ["1", "2"]
    assert [c.value for c in claims.of_holder(conn, OTHER)] == ["3"]
    assert claims.of_holder(conn, PROCESS._replace(pid=10)) == []


def test_only_its_claimant_gives_a_claim_back(conn: Connection) -> None:
    claims.take(conn, claim("1"))
    claims.take(conn, claim("2", holder=PROCESS))
    port = (ClaimKind.PORT, "tcp")
    assert not claims.release(conn, *port, "1", environment="env-2")
    assert not claims.release(conn, *port, "1", holder=PROCESS)
    assert not claims.release(conn, *port, "2", environment="env-1")
    assert not claims.release(conn, *port, "2", holder=OTHER)
    assert not claims.release(conn, *port, "3", environment="env-1")
    assert claims.release(conn, *port, "1", environment="env-1")
    assert claims.release(conn, *port, "2", environment="env-1", holder=UNPINNED)
    assert claims.all_(conn) == ([], [])


@pytest.mark.parametrize("nobody", [None, ""])
def test_nobody_claims_nothing(conn: Connection, nobody: str | None) -> None:
    with pytest.raises(InvalidValueError):
        claims.take(conn, claim("1", environment=nobody))
    with pytest.raises(InvalidValueError):
        claims.release(conn, ClaimKind.PORT, "tcp", "1", environment=nobody)


def test_an_environment_gives_back_what_it_has_and_not_what_its_processes_hold(
    conn: Connection,
) -> None:
    claims.take(conn, claim("1"))
    claims.take(conn, claim("2", name="api"))
    claims.take(conn, claim("3", holder=PROCESS))
    claims.take(conn, claim("4", environment="env-2"))
    assert [c.value for c in claims.of_environment(conn, "env-1")] == ["1", "2", "3"]
    assert claims.release_environment(conn, "env-1") == 2
    assert claims.taken_values(conn, ClaimKind.PORT) == {"3", "4"}


def test_taken_values_are_those_of_a_kind_in_scopes_with_a_prefix(conn: Connection) -> None:
    for value, scope in (("1", "tcp"), ("2", "tcp@127.1.2.3"), ("3", "udp"), ("4", "tc")):
        claims.take(conn, claim(value, scope=scope))
    claims.take(conn, claim("5", kind=ClaimKind.NAME))
    assert claims.taken_values(conn, ClaimKind.PORT, "tcp") == {"1", "2"}
    assert claims.taken_values(conn, ClaimKind.PORT, "tcp@") == {"2"}
    assert claims.taken_values(conn, ClaimKind.PORT) == {"1", "2", "3", "4"}
    assert claims.taken_values(conn, ClaimKind.PORT, "%") == set()


def test_an_intent_becomes_live_and_ends(conn: Connection) -> None:
    begun = record(1, kind=Kind.CONTAINER)
    records.insert(conn, begun)
    assert records.find(conn, "rec-1") == begun
    pairs = (("id", "f" * 64), ("daemon", "d"), ("started", 5))
    records.pin(conn, "rec-1", pairs, RecordState.LIVE)
    live = begun._replace(identity=pairs, state=RecordState.LIVE)
    assert records.find(conn, "rec-1") == live
    records.pin(conn, "rec-1", pairs, RecordState.LIVE, '{"log": "x"}')
    records.set_state(conn, "rec-1", RecordState.ENDED)
    ended = live._replace(state=RecordState.ENDED, detail='{"log": "x"}')
    assert records.all_(conn) == ([ended], [])
    records.delete(conn, "rec-1")
    assert records.find(conn, "rec-1") is None


def test_records_are_found_by_exact_owner_and_environment(conn: Connection) -> None:
    records.insert(conn, record(1))
    records.insert(conn, record(2, owner="own-10", environment=None, session="s\udcff"))
    records.insert(conn, record(3, environment="env-10"))
    assert records.of_owner(conn, "own-1") == [record(1), record(3, environment="env-10")]
    assert records.of_environment(conn, "env-1") == [record(1)]
    assert records.of_owner(conn, "own-10")[0].session == "s\udcff"
    assert records.of_owner(conn, "own") == []


@pytest.mark.parametrize("detail", ["", "[]", "null", "{", '"x"'])
def test_a_detail_that_is_no_object_is_not_written(conn: Connection, detail: str) -> None:
    with pytest.raises(InvalidValueError):
        records.insert(conn, record(1, detail=detail))
    records.insert(conn, record(1))
    with pytest.raises(InvalidValueError):
        records.pin(conn, "rec-1", (), RecordState.LIVE, detail)
    assert records.all_(conn) == ([record(1)], [])


def test_what_is_kept_is_remembered_until_it_is_not(conn: Connection) -> None:
    records.keep(conn, "container", "abc")
    records.keep(conn, "container", "abc")
    records.keep(conn, "process", "abc")
    assert records.kept(conn) == {("container", "abc"), ("process", "abc")}
    records.unkeep(conn, "container", "abc")
    assert records.kept(conn) == {("process", "abc")}


def test_an_owner_comes_back_with_sessions_and_epochs(conn: Connection) -> None:
    owners.mint(conn, "own-1", implicit_of=None, parent=None, now=1.0)
    owners.mint(conn, "own-2", implicit_of="env-1", parent="own-1", now=2.0)
    for session, at in (("s 1", 3.0), ("s\udcff", 4.0), ("'; --", 5.0)):
        owners.alias(conn, session, "own-1", "claude", at)
    epoch = owners.open_epoch(
        conn, owner="own-1", environment="env-1", agent="claude", boot_id="b", anchor=PROCESS, now=6
    )
    found = owners.by_session(conn, "s\udcff")
    assert found is not None
    assert found.sessions == ("s 1", "s\udcff", "'; --")
    assert found.epochs == (epoch,)
    assert found == owners.find(conn, "own-1")
    implicit = owners.implicit(conn, "env-1")
    assert implicit is not None
    assert (implicit.id, implicit.parent) == ("own-2", "own-1")
    assert owners.all_(conn) == ([found, implicit], [])
    for nobody in ("s", "s 1 ", "", "S 1"):
        assert owners.by_session(conn, nobody) is None


def test_a_session_is_the_alias_of_its_first_owner(conn: Connection) -> None:
    owners.mint(conn, "own-1", implicit_of=None, parent=None, now=1.0)
    owners.mint(conn, "own-2", implicit_of=None, parent=None, now=1.0)
    owners.alias(conn, "s", "own-1", "claude", 1.0)
    owners.alias(conn, "s", "own-2", "claude", 1.0)
    found = owners.by_session(conn, "s")
    assert found is not None
    assert found.id == "own-1"


def test_a_session_whose_owner_is_no_more_can_have_another(conn: Connection) -> None:
    owners.mint(conn, "own-2", implicit_of=None, parent=None, now=1.0)
    owners.alias(conn, "s", "own-gone", "claude", 1.0)
    assert owners.by_session(conn, "s") is None
    owners.alias(conn, "s", "own-2", "claude", 1.0)
    assert owners.by_session(conn, "s") is not None


@pytest.mark.parametrize("empty", ["", " ", "\t\n"])
def test_an_empty_id_owns_nothing(conn: Connection, empty: str) -> None:
    with pytest.raises(InvalidValueError):
        owners.mint(conn, empty, implicit_of=None, parent=None, now=1.0)
    with pytest.raises(InvalidValueError):
        owners.alias(conn, empty, "own-1", "claude", 1.0)


def test_releases_and_ends_are_of_one_epoch_or_of_all(conn: Connection) -> None:
    owners.mint(conn, "own-1", implicit_of=None, parent=None, now=1.0)
    owners.mint(conn, "own-2", implicit_of=None, parent=None, now=1.0)
    first, second, other = (
        owners.open_epoch(
            conn, owner=owner, environment=None, agent="a", boot_id="b", anchor=None, now=2.0
        )
        for owner in ("own-1", "own-1", "own-2")
    )
    assert owners.release(conn, "own-1", epoch_id=other.id, now=3.0, why="x") == 0
    assert owners.release(conn, "own-1", epoch_id=first.id, now=3.0, why="logout") == 1
    assert owners.release(conn, "own-1", epoch_id=first.id, now=9.0, why="again") == 0
    end = End(1.5, 0.25, "b")
    owners.note_end(conn, second.id, end)
    assert owners.release(conn, "own-1", epoch_id=None, now=4.0, why="all") == 1
    found = owners.find(conn, "own-1")
    assert found is not None
    assert found.epochs == (
        first._replace(released_at=3.0, released_why="logout"),
        second._replace(released_at=4.0, released_why="all", end=end),
    )
    owners.note_end(conn, second.id, None)
    again = owners.find(conn, "own-1")
    assert again is not None
    assert again.epochs[1].end is None
    untouched = owners.find(conn, "own-2")
    assert untouched is not None
    assert untouched.epochs == (other,)


def test_an_implicit_owner_goes_unless_a_record_names_it(conn: Connection) -> None:
    owners.mint(conn, "own-1", implicit_of="env-1", parent=None, now=1.0)
    records.insert(conn, record(1, owner="own-1"))
    owners.forget_implicit(conn, "env-1")
    assert owners.implicit(conn, "env-1") is not None
    records.delete(conn, "rec-1")
    owners.forget_implicit(conn, "env-1")
    assert owners.implicit(conn, "env-1") is None


def test_a_parent_can_be_noted_later(conn: Connection) -> None:
    owners.mint(conn, "own-1", implicit_of=None, parent=None, now=1.0)
    owners.reparent(conn, "own-1", "own-0")
    found = owners.find(conn, "own-1")
    assert found is not None
    assert found.parent == "own-0"


GARBAGE = ["", "{", "[]", "null", "[[", '{"pid": 1}', '[["pid", true]]', b"\xff\xfe", 5, "[" * 9999]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage)[:20])
def test_a_torn_record_is_shown_and_the_others_are_read(conn: Connection, garbage: Any) -> None:
    for number in (1, 2, 3):
        records.insert(conn, record(number))
    column = "creator" if garbage == "[]" else "identity"
    conn.execute(f"UPDATE resource SET {column} = ? WHERE id = 'rec-2'", (garbage,))
    good, bad = records.all_(conn)
    assert good == [record(1), record(3)]
    assert [(b.where, b.id) for b in bad] == [("resource", "rec-2")]
    assert bad[0].reason
    assert records.find(conn, "rec-2") is None
    assert records.of_environment(conn, "env-1") == [record(1), record(3)]
    assert records.of_owner(conn, "own-1") == [record(1), record(3)]
    records.delete(conn, "rec-2")
    assert records.all_(conn)[1] == []


def test_text_that_is_no_utf8_disables_only_its_row(conn: Connection) -> None:
    for number in (1, 2, 3):
        records.insert(conn, record(number))
        environments.insert(conn, environment(number))
    conn.execute("UPDATE resource SET name = CAST(x'66ff' AS TEXT) WHERE id = 'rec-2'")
    conn.execute("UPDATE environment SET path = CAST(x'66ff' AS TEXT) WHERE id = 'env-2'")
    good, bad = records.all_(conn)
    assert good == [record(1), record(3)]
    assert [b.id for b in bad] == ["rec-2"]
    places, torn = environments.all_(conn)
    assert places == [environment(1), environment(3)]
    assert [b.id for b in torn] == ["env-2"]


@pytest.mark.parametrize(
    ("column", "value"),
    [("kind", "pod"), ("state", "dreaming"), ("detail", "[]"), ("created_at", "soon")],
)
def test_a_record_of_a_newer_corral_is_shown(conn: Connection, column: str, value: str) -> None:
    records.insert(conn, record(1))
    conn.execute(f"UPDATE resource SET {column} = ?", (value,))
    good, bad = records.all_(conn)
    assert good == []
    assert [b.id for b in bad] == ["rec-1"]


def test_a_torn_environment_is_shown_and_its_id_stays_taken(conn: Connection) -> None:
    environments.insert(conn, environment(1))
    environments.insert(conn, environment(2))
    conn.execute("UPDATE environment SET inode = 'x' WHERE id = 'env-1'")
    good, bad = environments.all_(conn)
    assert good == [environment(2)]
    assert [(b.where, b.id) for b in bad] == [("environment", "env-1")]
    assert environments.find(conn, "env-1") is None
    assert environments.exists(conn, "env-1")


def test_a_torn_claim_is_shown_and_still_holds_its_value(conn: Connection) -> None:
    torn = claim("1", environment=None, holder=PROCESS)
    claims.take(conn, torn)
    claims.take(conn, claim("2"))
    conn.execute("UPDATE claim SET holder = '[[' WHERE value = '1'")
    good, bad = claims.all_(conn)
    assert good == [claim("2")]
    assert [(b.where, b.id) for b in bad] == [("claim", "port/tcp/1")]
    assert claims.taken_values(conn, ClaimKind.PORT, "tcp") == {"1", "2"}
    assert not claims.take(conn, torn)
    assert not claims.release(conn, ClaimKind.PORT, "tcp", "1", holder=PROCESS)
    found = claims.find(conn, ClaimKind.PORT, "tcp", "1")
    assert found is not None
    assert (found.environment, found.holder) == (None, None)


@pytest.mark.parametrize("number", ["web", "", "0", "70000", "22 001"])
def test_a_port_that_is_no_number_is_a_torn_claim(conn: Connection, number: str) -> None:
    claims.take(conn, claim("2"))
    claims.take(conn, claim("1"))
    conn.execute("UPDATE claim SET value = ? WHERE value = '1'", (number,))
    assert claims.of_environment(conn, "env-1") == [claim("2")]
    assert [b.id for b in claims.all_(conn)[1]] == [f"port/tcp/{number}"]


def test_a_path_that_cannot_be_one_is_a_torn_environment(conn: Connection) -> None:
    environments.insert(conn, environment(1, "/w\0x"))
    environments.insert(conn, environment(2))
    good, bad = environments.all_(conn)
    assert good == [environment(2)]
    assert [b.id for b in bad] == ["env-1"]


def _two_owners(conn: Connection) -> None:
    for owner in ("own-1", "own-2"):
        owners.mint(conn, owner, implicit_of=None, parent=None, now=1.0)
        owners.alias(conn, f"s-{owner}", owner, "claude", 1.0)
        opened = owners.open_epoch(
            conn, owner=owner, environment=None, agent="a", boot_id="b", anchor=PROCESS, now=2.0
        )
        owners.release(conn, owner, epoch_id=opened.id, now=3.0, why="x")
        owners.open_epoch(
            conn, owner=owner, environment=None, agent="a", boot_id="b", anchor=PROCESS, now=4.0
        )


@pytest.mark.parametrize(
    ("damage", "shown"),
    [
        ("UPDATE epoch SET anchor = '[[' WHERE id = 2", ("epoch", "2")),
        ("UPDATE epoch SET boot_id = x'ff' WHERE id = 2", ("epoch", "2")),
        ("UPDATE epoch SET \"end\" = '{}' WHERE id = 2", ("epoch", "2")),
        ("UPDATE epoch SET released_at = 'soon' WHERE id = 2", ("epoch", "2")),
        ("UPDATE owner SET created_at = 'soon' WHERE id = 'own-1'", ("owner", "own-1")),
    ],
)
def test_an_owner_that_is_not_understood_lives(
    conn: Connection, damage: str, shown: tuple[str, str]
) -> None:
    _two_owners(conn)
    whole = owners.find(conn, "own-2")
    conn.execute(damage)
    good, bad = owners.all_(conn)
    assert [(b.where, b.id) for b in bad] == [shown]
    assert whole in good
    torn = next(owner for owner in good if owner.id == "own-1")
    assert torn.sessions == ("s-own-1",)
    living = [e for e in torn.epochs if e.released_at is None and e.anchor is None]
    assert [e.boot_id for e in living] == [boot_id()]
    assert owners.by_session(conn, "s-own-1") == torn


def test_an_epoch_that_was_released_needs_no_more_understanding(conn: Connection) -> None:
    _two_owners(conn)
    conn.execute("UPDATE epoch SET anchor = '[[' WHERE owner = 'own-1'")
    assert owners.release(conn, "own-1", epoch_id=None, now=9.0, why="by hand") == 1
    found = owners.find(conn, "own-1")
    assert found is not None
    assert [epoch.released_at for epoch in found.epochs] == [3.0, 9.0]
    assert owners.all_(conn)[1] == []


def test_a_line_of_the_journal_that_is_not_understood_is_passed_over(conn: Connection) -> None:
    for name in ("a", "b\udcff", "c"):
        journal.append(conn, at=1.0, action="removed", name=name)
    conn.execute("UPDATE journal SET proof = x'ff' WHERE name = 'a'")
    assert [line.name for line in journal.since(conn, 0.0)] == ["b\udcff", "c"]


@pytest.mark.parametrize("value", ["abc", b"\xff", 2.5, ""])
def test_a_fence_that_is_not_understood_lets_the_others_grow(
    conn: Connection, value: object
) -> None:
    assert [fences.next_fence(conn, "a"), fences.next_fence(conn, "a")] == [1, 2]
    conn.execute("INSERT INTO fence (name, value) VALUES ('torn', ?)", (value,))
    assert fences.fences(conn) == {"a": 2}
    assert [fences.next_fence(conn, "a"), fences.next_fence(conn, "torn")] == [3, 4]


def test_a_path_that_is_no_unicode_can_be_trusted(conn: Connection) -> None:
    trust.trust(conn, ODD, "aa", 1.0)
    assert trust.is_trusted(conn, ODD, "aa")
    assert not trust.is_trusted(conn, ODD.replace("\udce9", "\udce8"), "aa")


TABLES = ("environment", "owner", "alias", "epoch", "claim", "resource", "keep", "output", "trust")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_stands_in_the_tables_nothing_raises(conn: Connection, seed: int) -> None:
    dice = random.Random(seed)
    for number in (1, 2, 3):
        environments.insert(conn, environment(number))
        records.insert(conn, record(number))
        claims.take(conn, claim(str(number)))
        environments.record_output(conn, Output(f"env-{number}", "/a", "file", "x"))
    _two_owners(conn)
    whole = (environments.all_(conn)[0], records.all_(conn)[0], claims.all_(conn)[0])
    assert [len(values) for values in whole] == [3, 3, 3]
    for _ in range(12):
        table = dice.choice(TABLES)
        rows = conn.execute(f"PRAGMA table_info({table})").fetchall()
        columns = [name for _, name, kind, *_ in rows if (name, kind) != ("id", "INTEGER")]
        value = dice.choice([b"\xff", 5, 2.5, "", "[[", "null", dice.randbytes(3), -1])
        conn.execute(f'UPDATE OR IGNORE {table} SET "{dice.choice(columns)}" = ?', (value,))
        for all_ in (environments.all_, records.all_, claims.all_, owners.all_):
            good, bad = all_(conn)
            assert isinstance(good, list)
            assert all(record.reason for record in bad)
        records.kept(conn)
        environments.outputs(conn, "env-1")
        claims.taken_values(conn, ClaimKind.PORT)
