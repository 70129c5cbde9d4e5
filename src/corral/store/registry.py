"""The registry: one SQLite database for a user and machine, shared by all worktrees.

Every writer passes the gate and then begins at once with SQLite's write lock, so that none starts
from what another one is about to change. Readers pass no gate: the write-ahead log gives each of
them a consistent snapshot while a writer is at work.
"""

from __future__ import annotations

import _thread
import atexit
import os
from _weakref import ref
from contextlib import closing, contextmanager

from corral.errors import HeldError, RegistryError
from corral.store import failures, schema, statedir
from corral.store.connection import PATIENCE, Connector
from corral.store.gate import Gate
from corral.store.sqlite import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

DEFAULT_TIMEOUT = 30.0

_registries: set[ref[Registry]] = set()
_held_for_fork: list[Registry] = []


class Registry:
    """The registry of one state directory, for this process; nothing is opened before it is used.

    Threads take turns. Parent and child may both go on using it after a fork, but not a child
    that was forked in the middle of a transaction. Close it, or use it as a context manager.
    """

    def __init__(self, state_dir: str, *, known: schema.Schema = schema.CURRENT) -> None:
        self.state_dir = state_dir
        self.path = statedir.registry_file(state_dir)
        self._known = known
        self._gate = Gate(statedir.gate_lock(state_dir))
        self._connector = Connector(state_dir)
        self._turn = _thread.RLock()
        self._active: sqlite3.Connection | None = None
        self._logged: sqlite3.Connection | None = None
        self._lost = False
        self._pid = os.getpid()
        _registries.add(ref(self, _registries.discard))

    @classmethod
    def open(cls, state_dir: str) -> Registry:
        """The registry of a state directory; nothing is looked at or created yet."""
        return cls(state_dir)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent reading, without the gate; nothing can be changed through it.

        A registry that is not there reads as an empty one, and is not created. Within a
        transaction of the same thread it is that transaction. Raises RegistryError.
        """
        self._take_turn(PATIENCE)
        try:
            if self._active is not None:
                yield self._active
            else:
                yield from self._reading()
        except sqlite3.Error as error:
            raise failures.explain(error, self.path) from error
        finally:
            self._turn.release()

    @contextmanager
    def write(
        self, *, timeout: float = DEFAULT_TIMEOUT, durable: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """One transaction behind the gate: all or nothing, and on disk when the block has ended.

        `timeout` in seconds: for the gate, and again for a program that goes round it. Without
        `durable` a power failure may undo it: for what means nothing after another boot. Raises
        HeldError when time runs out, RegistryError when the registry cannot be written; then, as
        with any error in the block, nothing was changed.
        """
        self._take_turn(timeout)
        try:
            if self._active is not None:
                raise RegistryError("a transaction of the registry is open in this thread already")
            # What can be done before the gate is done before it: there others wait.
            if not (self._connector.is_open and os.path.isdir(self.state_dir)):
                statedir.ensure(self.state_dir)
            ingest = durable and self._entries_wait()
            self._gate.enter(timeout)
            try:
                yield from self._transaction(timeout, durable=durable, ingest=ingest)
            except sqlite3.Error as error:
                raise failures.explain(error, self.path) from error
            finally:
                self._gate.leave()
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close what is open; the next use opens it again. Not within a transaction."""
        self._take_turn(DEFAULT_TIMEOUT)
        try:
            if self._active is not None:
                raise RegistryError("a transaction of the registry is still open in this thread")
            self._logged = None
            self._connector.close()
            self._gate.close()
        finally:
            self._turn.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._pid == os.getpid() and self._active is None and not self._lost:
            self._connector.close()
            self._gate.close()

    def before_fork(self) -> None:
        """Let no thread be within a transaction, and have no connection that a child would share.

        SQLite's locks belong to a process, and its notes about them to memory that a child
        inherits: a child that even opened the file anew would believe in locks that it has not.
        """
        self._turn.acquire()
        if self._active is None:
            self._logged = None
            self._connector.close()

    def after_fork(self, *, child: bool) -> None:
        """Let threads go on; a child of a transaction has lost it."""
        if child:
            self._lost = self._active is not None
            self._pid = os.getpid()
        self._turn.release()

    def _reading(self) -> Iterator[sqlite3.Connection]:
        conn = self._connector.existing()
        if conn is not None:
            yield from self._snapshot(conn)
            return
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
            yield from self._upgraded(empty, 0)

    def _snapshot(self, conn: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        conn.execute("BEGIN")
        self._active = conn
        try:
            version = schema.version_of(conn, self._known)
            if version >= self._known.version:
                yield conn
            else:  # only writers upgrade: what was read is upgraded in memory
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    conn.backup(copy)
                    yield from self._upgraded(copy, version)
        finally:
            self._end(conn)

    def _upgraded(self, memory: sqlite3.Connection, version: int) -> Iterator[sqlite3.Connection]:
        schema.upgrade(memory, version, self._known)
        memory.execute("PRAGMA query_only = ON")
        self._active = memory
        try:
            yield memory
        finally:
            self._active = None

    def _entries_wait(self) -> bool:
        try:
            return bool(os.listdir(statedir.spool_dir(self.state_dir)))
        except FileNotFoundError:
            return False
        except OSError:  # it is looked at again, and shown
            return True

    def _transaction(
        self, timeout: float, *, durable: bool, ingest: bool
    ) -> Iterator[sqlite3.Connection]:
        conn = self._connector.writable(timeout, durable=durable)
        self._log_ahead(conn)
        conn.execute("BEGIN IMMEDIATE")
        self._active = conn
        taken: tuple[str, ...] = ()
        try:
            schema.upgrade(conn, schema.version_of(conn, self._known), self._known)
            if ingest:
                from corral.store import spool

                taken = spool.ingest(self.state_dir, conn)
            yield conn
            if not self._lost:
                conn.execute("COMMIT")
        finally:
            self._end(conn)
        if taken and not self._lost:
            from corral.store import spool

            spool.discard(taken)  # an entry's file goes only after the entry is on disk

    def _log_ahead(self, conn: sqlite3.Connection) -> None:
        """See that the database has a write-ahead log; asked once for each connection."""
        if self._logged is conn:
            return
        if conn.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            schema.version_of(conn, self._known)  # what is not ours, or too new, stays untouched
            if conn.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise RegistryError(
                    f"the file system of {self.path} cannot carry a write-ahead log",
                    remedy="set CORRAL_STATE_DIR to a directory on a local disk",
                    resource=self.path,
                )
        self._logged = conn

    def _end(self, conn: sqlite3.Connection) -> None:
        self._active = None
        if not self._lost and conn.in_transaction:
            conn.execute("ROLLBACK")

    def _take_turn(self, timeout: float) -> None:
        if not self._turn.acquire(timeout=min(timeout, _thread.TIMEOUT_MAX)):
            raise HeldError(
                f"another thread of this process has used the registry for {timeout:g} s",
                remedy="try again",
                resource=self.path,
            )
        if self._lost or self._pid != os.getpid():
            try:
                self._refuse_lost()
            except RegistryError:
                self._turn.release()
                raise

    def _refuse_lost(self) -> None:
        if self._pid != os.getpid():  # forked by a C program, which asks nobody before it forks
            self._lost = self._lost or self._connector.is_open
            self._pid = os.getpid()
        if self._lost:
            self._connector.lose()
            raise RegistryError(
                "this process was forked while its parent was using the registry",
                remedy="open the registry in a process of its own",
                resource=self.path,
            )


def _before_fork() -> None:
    for known in list(_registries):
        registry = known()
        if registry is not None:
            registry.before_fork()
            _held_for_fork.append(registry)


def _after_fork(*, child: bool) -> None:
    while _held_for_fork:
        _held_for_fork.pop().after_fork(child=child)


def _close_at_exit() -> None:
    for known in list(_registries):
        registry = known()
        if registry is not None:
            registry.__del__()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=lambda: _after_fork(child=False),
    after_in_child=lambda: _after_fork(child=True),
)
atexit.register(_close_at_exit)
