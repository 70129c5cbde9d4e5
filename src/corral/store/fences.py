"""Fence numbers: each time a lock is taken it gets one that is larger than all before it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

# One sequence for all locks, so that a number also grows when a lock is found under another name
# than before, as after its clone was moved.
_NEXT = """
INSERT INTO fence (name, value) VALUES (?, (
    SELECT coalesce(max(value), 0) + 1 FROM fence WHERE typeof(value) = 'integer'))
ON CONFLICT (name) DO UPDATE SET value = excluded.value
RETURNING value
"""


def next_fence(conn: Connection, name: str) -> int:
    """A new number for the lock of that name."""
    (value,) = conn.execute(_NEXT, (name,)).fetchone()
    return int(value)


def fences(conn: Connection) -> dict[str, int]:
    """The last number of each lock; a row that is not understood has none."""
    query = "SELECT name, value FROM fence WHERE typeof(value) = 'integer'"
    return {str(name): int(value) for name, value in conn.execute(query)}
