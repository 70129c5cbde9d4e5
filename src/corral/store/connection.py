"""The one connection of a process to the registry's file: opened safely, and noticed when stale."""

from __future__ import annotations

import os
import stat

from corral.errors import RegistryError
from corral.store import statedir
from corral.store.sqlite import sqlite3

# Beyond the gate SQLite's own lock is only met by a reader while the last writer folds the log
# into the database, and by a program that goes round the gate.
PATIENCE = 10.0

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW

# Connections of the parent that a forked child must neither use nor close.
_lost: list[sqlite3.Connection] = []


class Connector:
    """Opens the registry of a state directory when it is asked for, and keeps it open.

    A file that was deleted or replaced meanwhile is found again by its device and inode.
    """

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._path = statedir.registry_file(state_dir)
        self._conn: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._patience = PATIENCE
        self._read_only = False
        self._durable = True

    @property
    def is_open(self) -> bool:
        """Whether there is a connection now."""
        return self._conn is not None

    def existing(self) -> sqlite3.Connection | None:
        """The connection, for reading only; None while there is no registry. Creates nothing."""
        conn = self._current(make=False)
        if conn is not None:
            self._set(conn, PATIENCE, read_only=True)
        return conn

    def writable(self, patience: float, *, durable: bool = True) -> sqlite3.Connection:
        """The connection, for writing; makes the file where it is missing.

        `patience`: seconds to wait for a program that goes round the gate. `durable`: a commit
        is on disk before it returns.
        """
        conn = self._current(make=True)
        if conn is None:
            raise RegistryError(
                f"the registry {self._path} went while it was being opened",
                remedy="try again",
                resource=self._path,
            )
        self._set(conn, min(patience, PATIENCE), read_only=False)
        if durable is not self._durable:
            conn.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        return conn

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def lose(self) -> None:
        """In a forked child: put the parent's connection out of reach.

        It must be neither used nor closed there: https://sqlite.org/howtocorrupt.html, 2.6.
        """
        conn, self._conn = self._conn, None
        if conn is not None:
            _lost.append(conn)

    def _current(self, *, make: bool) -> sqlite3.Connection | None:
        if self._conn is not None and self._is_current():
            return self._conn
        self.close()
        if not statedir.is_there(self._state_dir):
            return None
        found = self._look()
        if found is None and make:
            self._make()
            found = self._look()
        if found is None:
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise RegistryError(
                f"the registry {self._path} is no regular file of yours",
                remedy="move it aside",
                resource=self._path,
            )
        # An empty file: whoever made it was killed before the first commit.
        return self._open(found) if found.st_size or make else None

    def _is_current(self) -> bool:
        try:
            return _identity(os.stat(self._path, follow_symlinks=False)) == self._file
        except OSError:  # deleted, or out of reach: opening it anew tells which
            return False

    def _look(self) -> os.stat_result | None:
        try:
            return os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _make(self) -> None:
        statedir.refuse_network(self._state_dir)
        try:
            os.close(os.open(self._path, _NEW, 0o600))
        except OSError as error:  # full, read-only, no permission
            raise RegistryError(
                f"the registry {self._path} cannot be made: {error.strerror}",
                remedy="free some space, or see that you may write to its directory",
                resource=self._path,
            ) from error

    def _open(self, found: os.stat_result) -> sqlite3.Connection:
        quoted = self._path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        conn = self._conn = sqlite3.connect(
            f"file://{quoted}?mode=rw",  # never makes a file, whoever deleted it meanwhile
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        self._file = _identity(found)
        self._patience, self._read_only, self._durable = PATIENCE, False, True
        conn.execute("PRAGMA synchronous = FULL")
        return conn

    def _set(self, conn: sqlite3.Connection, patience: float, *, read_only: bool) -> None:
        if patience != self._patience:
            conn.execute(f"PRAGMA busy_timeout = {int(patience * 1000):d}")
            self._patience = patience
        if read_only is not self._read_only:
            conn.execute(f"PRAGMA query_only = {read_only:d}")
            self._read_only = read_only


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
