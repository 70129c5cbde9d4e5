"""Rows about resources: intents, what became of them, and what is to be kept."""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.kernel.identity import decode_identity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.store import encoding
from corral.store.rows import change, decode_all, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.record import BadRecord
    from corral.store.encoding import Pairs
    from corral.store.rows import Row

_COLUMNS = (
    "id, kind, backend, role, name, owner, session, environment, state, identity, creator, "
    "created_at, detail"
)
_SELECT = f"SELECT {_COLUMNS} FROM resource"
_INSERT = f"INSERT INTO resource ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _decode(row: Row) -> Record:
    identifier, kind, backend, role, name, owner, session, environment, *rest = row
    state, identity, creator, created_at, detail = rest
    encoding.parse_object(detail)
    if kind == Kind.PROCESS.value and state == RecordState.LIVE.value:
        decode_identity(encoding.decode_pairs(identity))
    return Record(
        encoding.text(identifier),
        encoding.word(Kind, kind),
        encoding.text(backend),
        encoding.text(role),
        encoding.text(name),
        encoding.text(owner),
        encoding.optional_text(session),
        encoding.optional_text(environment),
        encoding.word(RecordState, state),
        encoding.decode_pairs(identity),
        encoding.decode_process(creator),
        encoding.number(created_at),
        encoding.text(detail),
    )


def insert(conn: Connection, record: Record) -> None:
    """Add a record. Raises InvalidValueError when its detail is no JSON object."""
    encoding.parse_object(record.detail)
    change(
        conn,
        _INSERT,
        record.id,
        record.kind.value,
        *record[2:8],
        record.state.value,
        encoding.encode_pairs(record.identity),
        encoding.encode_process(record.creator),
        record.created_at,
        record.detail,
    )


def pin(
    conn: Connection,
    identifier: str,
    identity: Pairs,
    state: RecordState = RecordState.LIVE,
    detail: str | None = None,
) -> None:
    """An intent became a resource of this identity; `detail`, where given, replaces the old."""
    if detail is not None:
        encoding.parse_object(detail)
    change(
        conn,
        "UPDATE resource SET identity = ?, state = ?, detail = coalesce(?, detail) WHERE id = ?",
        encoding.encode_pairs(identity),
        state.value,
        detail,
        identifier,
    )


def set_state(conn: Connection, identifier: str, state: RecordState) -> None:
    """Change a record's state."""
    change(conn, "UPDATE resource SET state = ? WHERE id = ?", state.value, identifier)


def find(conn: Connection, identifier: str) -> Record | None:
    """One record, None where there is none of that id that can be understood."""
    rows = fetch(conn, f"{_SELECT} WHERE id = ?", identifier)
    return next(iter(decode_all("resource", rows, _decode)[0]), None)


def all_(conn: Connection) -> tuple[list[Record], list[BadRecord]]:
    """Every record, oldest first, and the rows that cannot be understood."""
    return decode_all("resource", fetch(conn, f"{_SELECT} ORDER BY created_at, id"), _decode)


def of_owner(conn: Connection, owner: str) -> list[Record]:
    """The records of an owner, oldest first."""
    rows = fetch(conn, f"{_SELECT} WHERE owner = ? ORDER BY created_at, id", owner)
    return decode_all("resource", rows, _decode)[0]


def of_environment(conn: Connection, environment: str) -> list[Record]:
    """The records of an environment, oldest first."""
    rows = fetch(conn, f"{_SELECT} WHERE environment = ? ORDER BY created_at, id", environment)
    return decode_all("resource", rows, _decode)[0]


def of_kind(conn: Connection, kind: Kind) -> list[Record]:
    """The records of a kind, oldest first."""
    rows = fetch(conn, f"{_SELECT} WHERE kind = ? ORDER BY created_at, id", kind.value)
    return decode_all("resource", rows, _decode)[0]


def backends(conn: Connection) -> set[str]:
    """The names of the backends that anything is recorded in."""
    return {str(name) for (name,) in fetch(conn, "SELECT DISTINCT backend FROM resource")}


def delete(conn: Connection, identifier: str) -> None:
    """Forget a record."""
    change(conn, "DELETE FROM resource WHERE id = ?", identifier)


def keep(conn: Connection, kind: str, identifier: str) -> None:
    """Remember that a resource is never to be taken down."""
    change(
        conn, "INSERT INTO keep (kind, id) VALUES (?, ?) ON CONFLICT DO NOTHING", kind, identifier
    )


def unkeep(conn: Connection, kind: str, identifier: str) -> None:
    """Undo `keep`."""
    change(conn, "DELETE FROM keep WHERE kind = ? AND id = ?", kind, identifier)


def kept(conn: Connection) -> set[tuple[str, str]]:
    """The (kind, id) of what is kept."""
    return {
        (str(kind), str(identifier))
        for kind, identifier in fetch(conn, "SELECT kind, id FROM keep")
    }


def places(conn: Connection) -> list[tuple[str, str]]:
    """Pairs of a backend's name and the place in it that records lead to, in a fixed order."""
    found = set()
    query = "SELECT DISTINCT backend, detail FROM resource WHERE instr(detail, '\"place\"')"
    for backend, detail in fetch(conn, query):
        try:
            place = encoding.parse_object(detail).get("place")
        except InvalidValueError:
            # A torn row; `all_` reports it.
            continue
        if isinstance(backend, str) and isinstance(place, str) and place:
            found.add((backend, place))
    return sorted(found)
