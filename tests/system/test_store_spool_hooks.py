"""What hooks leave in the spool: read back as it was written, and counted before it is taken in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import InvalidValueError
from corral.model.hook import Caller, Heard
from corral.model.process import ProcessIdentity
from corral.store import hook_entry, journal, owners, sessions, spool, spooled
from corral.store.registry import Registry
from corral.store.sessions import Begun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corral.model.owner import Owner

ANCHOR = ProcessIdentity(10, 100, "boot", 1)
ABOVE = ((11, 110), (10, 100), (1, 0))
END = b'{"hook_event_name": "SessionEnd", "session_id": "s", "cwd": "/w", "reason": "other"}'
HEARD = Heard("claude", 9.0, END, Caller(ABOVE, "boot", 1))
_numbers = st.integers(0, 2**62)


def begun(session: str = "s", **fields: object) -> Begun:
    base = Begun(session, "own-1", "claude", "env-1", "boot", ANCHOR, ABOVE, 5.0, joins=True)
    return base._replace(**fields)  # type: ignore[arg-type]


@pytest.fixture
def registry(state_dir: Path) -> Iterator[Registry]:
    """A registry with one session, anchored to the process 10."""
    with Registry.open(str(state_dir)) as registry:
        with registry.write() as conn:
            sessions.begin(conn, begun())
        yield registry


def known(registry: Registry) -> tuple[Owner, ...]:
    with registry.read() as conn:
        return tuple(owners.all_(conn)[0])


def take_in(registry: Registry) -> None:
    with registry.write():
        pass


def released(found: tuple[Owner, ...]) -> list[str]:
    return [e.released_why for o in found for e in o.epochs if e.released_at is not None]


@given(
    st.binary(max_size=200),
    st.floats(0, 4e9),
    st.lists(st.tuples(_numbers, _numbers), max_size=5),
    _numbers,
    _numbers,
)
def test_a_call_reads_back_as_it_was_written(
    content: bytes, at: float, above: list[tuple[int, int]], namespace: int, agent_pid: int
) -> None:
    caller = Caller(tuple(above), "6ff2a0be-8f6a-4d6c-9f4c-3f1f0d4c7a11", namespace, agent_pid)
    heard = Heard("codex", at, content, caller)
    found = spooled.decode_heard(hook_entry.encode(heard))
    assert found._replace(at=at) == heard
    assert found.at == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize(
    "damage",
    [
        ('"content":"', '"content":"zz'),
        ("[[11,110]", "[[11]"),
        ('"above":[', '"above":{}, "x":['),
        ('"at":9', '"at":"9'),
        ('"boot_id":"boot"', '"boot_id":7'),
    ],
)
def test_a_torn_call_is_no_entry(damage: tuple[str, str]) -> None:
    text = hook_entry.encode(HEARD).decode()
    assert damage[0] in text
    with pytest.raises(InvalidValueError):
        spooled.decode_heard(text.replace(*damage).encode())


def test_another_entry_is_no_call() -> None:
    content = spooled.encode({"entry": "event", "at": 1.0, "action": "x"})
    with pytest.raises(InvalidValueError, match="no call"):
        spooled.decode_heard(content)


def test_an_end_counts_before_it_is_taken_in_and_is_applied_once(
    registry: Registry, state_dir: Path
) -> None:
    hook_entry.leave(str(state_dir), HEARD)
    assert released(known(registry)) == []
    assert released(spool.overlay(str(state_dir), known(registry))) == ["claude: other"]
    assert [line.name for line in spool.lines(str(state_dir))] == ["SessionEnd"]
    for _ in range(2):
        take_in(registry)
    (owner,) = known(registry)
    assert [(e.released_at, e.released_why) for e in owner.epochs] == [(9.0, "claude: other")]
    with registry.read() as conn:
        lines = journal.since(conn, 0.0)
    assert [(e.name, e.owner, e.environment) for e in lines] == [("SessionEnd", "own-1", "env-1")]
    assert spool.lines(str(state_dir)) == []


@pytest.mark.parametrize(
    "heard",
    [
        HEARD._replace(content=b"{"),
        HEARD._replace(content=END.replace(b'"s"', b'"another"')),
        HEARD._replace(content=END.replace(b"other", b"clear")),
        HEARD._replace(caller=Caller((), "boot", 1)),
        HEARD._replace(caller=Caller(ABOVE, "another boot", 1)),
        HEARD._replace(caller=Caller(ABOVE, "boot", 2)),
        HEARD._replace(caller=Caller(((10, 101),), "boot", 1)),
    ],
)
def test_what_is_not_this_sessions_end_ends_nothing(
    registry: Registry, state_dir: Path, heard: Heard
) -> None:
    hook_entry.leave(str(state_dir), heard)
    assert released(spool.overlay(str(state_dir), known(registry))) == []
    take_in(registry)
    assert released(known(registry)) == []


def test_a_start_counts_before_it_is_taken_in(registry: Registry, state_dir: Path) -> None:
    hook_entry.leave(str(state_dir), HEARD)
    again = begun(owner="own-2", anchor=ANCHOR._replace(pid=20), at=12.0)
    spool.append(str(state_dir), spooled.begun_entry(again))
    (seen,) = spool.overlay(str(state_dir), known(registry))
    assert [e.released_at for e in seen.epochs] == [9.0, None]
    take_in(registry)
    (owner,) = known(registry)
    assert [e.released_at for e in owner.epochs] == [9.0, None]
    assert owner.epochs[1].anchor == again.anchor


def test_the_start_of_a_session_that_nobody_knows_mints_the_owner_that_was_promised(
    registry: Registry, state_dir: Path
) -> None:
    new = begun("new", owner="own-new", anchor=None, environment=None)
    spool.append(str(state_dir), spooled.begun_entry(new))
    assert [o.id for o in spool.overlay(str(state_dir), known(registry))] == ["own-1"]
    take_in(registry)
    assert [(o.id, o.sessions) for o in known(registry)] == [
        ("own-1", ("s",)),
        ("own-new", ("new",)),
    ]


def test_a_new_id_joins_who_lives_in_the_process_and_a_users_own_does_not(
    registry: Registry,
) -> None:
    with registry.write() as conn:
        joined = sessions.begin(conn, begun("after-clear", owner="own-2"))
        apart = sessions.begin(conn, begun("by-hand", owner="own-3", worker="corral", joins=False))
    assert (joined[0], apart[0]) == ("own-1", "own-3")


@pytest.mark.parametrize("field", ["session", "owner", "boot_id", "above", "anchor", "at"])
def test_a_torn_start_is_no_entry(state_dir: Path, field: str) -> None:
    entry = {**spooled.begun_entry(begun()), field: "" if field != "anchor" else [["pid", "x"]]}
    with pytest.raises(InvalidValueError):
        spool.append(str(state_dir), entry)
