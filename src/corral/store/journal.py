"""The journal: one line for every removal, and for every call of a hook."""

from __future__ import annotations

from corral.model.record import Event
from corral.store import encoding
from corral.store.rows import decode_all, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.store.rows import Row

LIMIT = 20_000
SUPERVISOR = "supervisor; "  # begins the detail of a removed supervisor's line
_COLUMNS = 'at, action, kind, resource, name, owner, environment, "trigger", proof, detail'


def append(  # noqa: PLR0913 (a line has as many columns)
    conn: Connection,
    *,
    at: float,
    action: str,
    kind: str = "",
    resource: str = "",
    name: str = "",
    owner: str | None = None,
    environment: str | None = None,
    trigger: str = "",
    proof: str = "",
    detail: str = "",
) -> None:
    """Add a line; `at` in seconds of unix time. Beyond 20,000 lines the oldest go."""
    line = (at, action, kind, resource, name, owner, environment, trigger, proof, detail)
    cursor = conn.execute(
        f"INSERT INTO journal ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        encoding.bind(*line),
    )
    conn.execute("DELETE FROM journal WHERE id <= ?", ((cursor.lastrowid or 0) - LIMIT,))


def since(conn: Connection, at: float, limit: int = LIMIT) -> list[Event]:
    """The lines from `at` (unix time) on, oldest first; the newest `limit` of them."""
    rows = fetch(
        conn,
        f"SELECT id, {_COLUMNS} FROM journal WHERE at >= ? ORDER BY id DESC LIMIT ?",
        at,
        limit,
    )
    return decode_all("journal", reversed(rows), _decode)[0]


def was_hooked_since(conn: Connection, owner: str, event: str, at: float) -> bool:
    """Whether a hook of the owner's was called with this event after `at` (unix time)."""
    query = (
        "SELECT 1 FROM journal WHERE action = 'hook' AND name = ? AND owner = ? AND at > ? LIMIT 1"
    )
    return bool(fetch(conn, query, event, owner, at))


def _decode(row: Row) -> Event:
    identifier, at, action, kind, resource, name, owner, environment, *rest = row
    trigger, proof, detail = rest
    return Event(
        encoding.integer(identifier),
        encoding.number(at),
        encoding.text(action),
        encoding.text(kind),
        encoding.text(resource),
        encoding.text(name),
        encoding.optional_text(owner),
        encoding.optional_text(environment),
        encoding.text(trigger),
        encoding.text(proof),
        encoding.text(detail),
    )
