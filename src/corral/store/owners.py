"""Rows about owners, their session ids and their epochs.

What cannot be understood of an owner is shown, and stands as an epoch that nothing proves to be
over: such an owner lives.
"""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.owner import Epoch, Owner
from corral.model.record import BadRecord
from corral.store import encoding
from corral.store.rows import change, decode_all, fetch, shown_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection
    from typing import TypeVar

    from corral.model.owner import End
    from corral.model.process import ProcessIdentity
    from corral.store.rows import Row

    Part = TypeVar("Part")

_EPOCH = (
    'id, owner, environment, agent, opened_at, boot_id, anchor, released_at, released_why, "end"'
)


def mint(
    conn: Connection, identifier: str, *, implicit_of: str | None, parent: str | None, now: float
) -> None:
    """Add an owner. Raises InvalidValueError for an empty id, which owns nothing."""
    _refuse_empty(identifier, "an owner's id")
    change(
        conn,
        "INSERT INTO owner (id, implicit_of, parent, created_at) VALUES (?, ?, ?, ?)",
        identifier,
        implicit_of,
        parent,
        now,
    )


def alias(conn: Connection, session: str, owner: str, agent: str, now: float) -> None:
    """Make a session id an exact alias of an owner; one of another owner's stays as it is."""
    _refuse_empty(session, "a session id")
    change(
        conn,
        "INSERT INTO alias (session, owner, agent, created_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (session) DO UPDATE SET owner = excluded.owner, agent = excluded.agent "
        "WHERE NOT EXISTS (SELECT 1 FROM owner WHERE owner.id = alias.owner)",
        session,
        owner,
        agent,
        now,
    )


def _refuse_empty(identifier: str, what: str) -> None:
    if not identifier.strip():
        raise InvalidValueError(f"{what} is empty", remedy="an empty id owns nothing: name one")


def by_session(conn: Connection, session: str) -> Owner | None:
    """The owner that has exactly this session id."""
    rows = fetch(conn, "SELECT owner FROM alias WHERE session = ?", session)
    return find(conn, encoding.text(rows[0][0])) if rows else None


def implicit(conn: Connection, environment: str) -> Owner | None:
    """The implicit owner of an environment."""
    rows = fetch(conn, "SELECT id FROM owner WHERE implicit_of = ?", environment)
    return find(conn, encoding.text(rows[0][0])) if rows else None


def find(conn: Connection, identifier: str) -> Owner | None:
    """One owner with its session ids and epochs."""
    known, _ = _load(conn, " WHERE id = ?", " WHERE owner = ?", identifier)
    return known[0] if known else None


def all_(conn: Connection) -> tuple[list[Owner], list[BadRecord]]:
    """Every owner, oldest first, and the rows that cannot be understood."""
    return _load(conn, "", "")


class _Reading:
    """Rows of several tables by the owner that they are about, and what is not understood."""

    def __init__(self) -> None:
        self.bad: list[BadRecord] = []
        self.torn: set[str] = set()

    def by_owner(
        self, table: str, rows: list[Row], column: int, decode: Callable[[Row], Part]
    ) -> dict[str, list[Part]]:
        """The values of a table's rows by the owner that stands in `column`."""
        found: dict[str, list[Part]] = {}
        for row in rows:
            owner = None
            try:
                owner = encoding.text(row[column])
                found.setdefault(owner, []).append(decode(row))
            except InvalidValueError as error:
                self.bad.append(BadRecord(table, shown_id(row), error.message))
                if owner is not None:
                    self.torn.add(owner)
        return found


def _load(
    conn: Connection, which: str, whose: str, *values: str
) -> tuple[list[Owner], list[BadRecord]]:
    reading = _Reading()
    query = f"SELECT session, owner FROM alias{whose} ORDER BY created_at, session"
    rows = fetch(conn, query, *values)
    sessions = reading.by_owner("alias", rows, 1, lambda row: encoding.text(row[0]))
    rows = fetch(conn, f"SELECT {_EPOCH} FROM epoch{whose} ORDER BY id", *values)
    epochs = reading.by_owner("epoch", rows, 1, _decode_epoch)
    query = f"SELECT id, implicit_of, parent, created_at FROM owner{which} ORDER BY created_at, id"
    owners = reading.by_owner("owner", fetch(conn, query, *values), 0, _decode_owner)
    good = []
    for identifier in owners:
        owner = next(iter(owners[identifier]), Owner(identifier, None, None, 0.0))
        mine = epochs.get(identifier, [])
        if identifier in reading.torn:
            mine = [*mine, _unreadable(identifier)]
        names = sessions.get(identifier, [])
        good.append(owner._replace(sessions=tuple(names), epochs=tuple(mine)))
    return good, reading.bad


def _decode_owner(row: Row) -> Owner:
    identifier, implicit_of, parent, created_at = row
    return Owner(
        encoding.text(identifier),
        encoding.optional_text(implicit_of),
        encoding.optional_text(parent),
        encoding.number(created_at),
    )


def _unreadable(owner: str) -> Epoch:
    """What stands for a part that is not understood: an epoch that nothing proves to be over."""
    from corral.kernel.clock import boot_id

    return Epoch(0, owner, None, "unreadable", 0.0, boot_id(), None, None, "", None)


def _decode_epoch(row: Row) -> Epoch:
    try:
        return _decode_whole_epoch(row)
    except InvalidValueError:
        if not isinstance(row[7], float):
            raise
        # It was released, so nothing more is asked of it.
        return Epoch(
            encoding.integer(row[0]), str(row[1]), None, "", 0.0, "", None, row[7], "", None
        )


def _decode_whole_epoch(row: Row) -> Epoch:
    identifier, owner, environment, agent, opened_at, boot_id, anchor, *rest = row
    released_at, released_why, end = rest
    return Epoch(
        encoding.integer(identifier),
        encoding.text(owner),
        encoding.optional_text(environment),
        encoding.text(agent),
        encoding.number(opened_at),
        encoding.text(boot_id),
        encoding.decode_process(anchor),
        encoding.optional_number(released_at),
        encoding.text(released_why),
        encoding.decode_end(end),
    )


def open_epochs(conn: Connection, boot_id: str) -> list[Epoch]:
    """The epochs of this boot that were not released, of all owners; unreadable ones left out."""
    rows = fetch(
        conn,
        f"SELECT {_EPOCH} FROM epoch WHERE released_at IS NULL AND boot_id = ? ORDER BY id",
        boot_id,
    )
    return decode_all("epoch", rows, _decode_epoch)[0]


def open_epoch(
    conn: Connection,
    *,
    owner: str,
    environment: str | None,
    agent: str,
    boot_id: str,
    anchor: ProcessIdentity | None,
    now: float,
) -> Epoch:
    """Open an epoch and return it with its id; `now` in seconds of unix time."""
    cursor = conn.execute(
        "INSERT INTO epoch (owner, environment, agent, opened_at, boot_id, anchor) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        encoding.bind(owner, environment, agent, now, boot_id, encoding.encode_process(anchor)),
    )
    identifier = cursor.lastrowid or 0
    return Epoch(identifier, owner, environment, agent, now, boot_id, anchor, None, "", None)


def release(conn: Connection, owner: str, *, epoch_id: int | None, now: float, why: str) -> int:
    """Record that an epoch (None: every one) of an owner was released; how many were."""
    return change(
        conn,
        "UPDATE epoch SET released_at = ?, released_why = ? "
        "WHERE owner = ? AND released_at IS NULL AND id = coalesce(?, id)",
        now,
        why,
        owner,
        epoch_id,
    )


def note_end(conn: Connection, epoch_id: int, end: End | None) -> None:
    """Record when an epoch was first seen to be over."""
    change(conn, 'UPDATE epoch SET "end" = ? WHERE id = ?', encoding.encode_end(end), epoch_id)


def reparent(conn: Connection, owner: str, parent: str | None) -> None:
    """Record which owner another was started inside."""
    change(conn, "UPDATE owner SET parent = ? WHERE id = ?", parent, owner)


def forget(conn: Connection, identifier: str, heard_before: float) -> None:
    """Forget an owner, its session ids and epochs, unless a record or a claim still names it.

    Nor if it was heard of again at or after `heard_before` (unix seconds).
    """
    changed = change(
        conn,
        "DELETE FROM owner WHERE id = ?1 AND implicit_of IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM resource WHERE owner = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM claim WHERE worker = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM epoch WHERE owner = ?1 AND opened_at >= ?2)",
        identifier,
        heard_before,
    )
    if changed:
        change(conn, "DELETE FROM alias WHERE owner = ?", identifier)
        change(conn, "DELETE FROM epoch WHERE owner = ?", identifier)


def forget_implicit(conn: Connection, environment: str) -> None:
    """Forget the implicit owner of an environment, unless a record still names it."""
    change(
        conn,
        "DELETE FROM owner WHERE implicit_of = ? "
        "AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.owner = owner.id)",
        environment,
    )
