"""Which content of which file the user has trusted to bring commands."""

from __future__ import annotations

from corral.store.rows import change, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection


def trust(conn: Connection, path: str, digest: str, now: float) -> None:
    """Trust exactly this content of this file, and no earlier content any more."""
    change(
        conn, "INSERT OR REPLACE INTO trust (path, digest, at) VALUES (?, ?, ?)", path, digest, now
    )


def is_trusted(conn: Connection, path: str, digest: str) -> bool:
    """Whether exactly this content of this file is trusted."""
    return fetch(conn, "SELECT digest FROM trust WHERE path = ?", path) == [(digest,)]
