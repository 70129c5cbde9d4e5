"""SQLite's errors in words: what is wrong with the registry, and what to do about it."""

from __future__ import annotations

from corral.errors import CorralError, HeldError, RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

# Primary result codes, from https://sqlite.org/rescode.html
_BUSY, _LOCKED, _READ_ONLY, _IO, _CORRUPT, _FULL, _CANNOT_OPEN, _NO_DATABASE = (
    5,
    6,
    8,
    10,
    11,
    13,
    14,
    26,
)

_MOVE_ASIDE = (
    "move the file aside together with its -wal and -shm: corral starts a new one and finds "
    "what runs by its marks"
)
_REMEDIES = {
    _FULL: "free some space on that disk; nothing was changed",
    _IO: "see that the disk is healthy and not full; nothing was changed",
    _CORRUPT: _MOVE_ASIDE,
    _NO_DATABASE: _MOVE_ASIDE,
    _READ_ONLY: "see that the file and its directory are yours and writable",
    _CANNOT_OPEN: "see that the file and its directory are yours, readable and writable",
}


def explain(error: sqlite3.Error, path: str) -> CorralError:
    """The error to raise for `error` of the registry at `path`.

    HeldError when another program holds SQLite's own lock, else RegistryError.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # absent where Python itself objects
    if code in {_BUSY, _LOCKED}:
        return HeldError(
            f"the registry {path} is locked by another program",
            remedy="wait for that program to end, then try again",
            resource=path,
        )
    return RegistryError(
        f"the registry {path} cannot be used: {error}",
        remedy=_REMEDIES.get(code, ""),
        resource=path,
    )
