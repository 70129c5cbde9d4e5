"""The gate: one flock that every writer of the registry passes, one at a time, in order.

SQLite's own lock is no queue: who loses sleeps for a while and tries again, and some never win.
The kernel's queue for a flock is first come, first served, and a holder that dies gives the lock
up. Passing a free gate costs one system call to lock, one to see that the file is still the one
in the directory, one to unlock; the descriptor stays open.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import time

from corral.errors import HeldError, StateDirectoryError
from corral.kernel.lockholder import holder
from corral.kernel.threads import start_quiet_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_PAUSE = 0.001  # seconds between two tries where there can be no thread
_SLICE = 0.5  # seconds of waiting after which an interrupt is looked for
_IDLE = 0.05  # seconds that the thread of a queue stays for the next turn

# A flock lasts as long as any descriptor of its open file: a forked child closes its copies.
# The guard keeps a fork in another thread from falling between opening and writing down.
_descriptors: set[int] = set()
_guard = _thread.RLock()


class Gate:
    """The gate at `path`, for one transaction at a time (threads take turns before it)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None
        self._queue: _Queue | None = None
        self._pid = 0

    def enter(self, timeout: float) -> None:
        """Take the gate within `timeout` seconds.

        Raises HeldError naming who holds it, StateDirectoryError when it cannot be locked.
        """
        deadline = time.monotonic() + timeout
        inside = False
        try:
            while not inside:
                fd = self._descriptor()
                if not _try(fd) and not self._wait(fd, deadline - time.monotonic()):
                    self._refuse(timeout)
                inside = self._is_current(fd)
                if not inside:
                    self.close()  # somebody deleted the file: the gate is the new one
        except OSError as error:  # ENOLCK, EACCES, ELOOP, ENOSPC, ...: not the same as held
            raise StateDirectoryError(
                f"{self.path} cannot be locked: {error.strerror}",
                remedy="it has to be a file of yours on a local file system that is not full",
                resource=self.path,
            ) from error
        finally:
            if not inside:
                self.close()

    def leave(self) -> None:
        """Let the next one in."""
        if self._fd is not None and self._pid == os.getpid():
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up the descriptor, and with it the lock."""
        queue, self._queue = self._queue, None
        fd, self._fd = self._fd, None
        if self._pid != os.getpid():
            return  # a forked child: its copies were closed when it began
        if queue is not None:
            queue.abandon()
        if fd is not None:
            fcntl.flock(fd, fcntl.LOCK_UN)  # also for a copy that a C program forked off
            _close(fd)

    def _descriptor(self) -> int:
        if self._fd is None or self._pid != os.getpid():
            with _guard:
                self._fd = os.open(self.path, _FLAGS, 0o600)
                _descriptors.add(self._fd)
            self._queue = None
            self._pid = os.getpid()
        return self._fd

    def _wait(self, fd: int, seconds: float) -> bool:
        if seconds <= 0:
            return False
        if self._queue is None:
            self._queue = _Queue(fd)
        return self._queue.wait(seconds)

    def _is_current(self, fd: int) -> bool:
        ours = os.fstat(fd)
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)

    def _refuse(self, timeout: float) -> NoReturn:
        who = holder(self.path)
        name = f"process {who['pid']} ({who['command']})" if who else "another process"
        raise HeldError(
            f"the registry was being written by {name} for {timeout:g} s",
            remedy="try again; if that process hangs, end it",
            resource=self.path,
        )


class _Queue:
    """Waits for a flock in a thread, because waiting in the kernel's queue has no time limit.

    The thread stays for a moment after each turn: under contention the next one follows at once,
    and to start a thread costs as much as a transaction.
    """

    def __init__(self, fd: int) -> None:
        with _guard:
            self._fd = os.dup(fd)
            _descriptors.add(self._fd)
        self._state = _thread.allocate_lock()  # guards the three below
        self._runs = self._answered = self._abandoned = False
        self._asked = _locked()
        self._answer = _locked()
        self._error: OSError | None = None

    def wait(self, seconds: float) -> bool:
        """Whether the lock was had in time; if not, or if interrupted, abandon the queue."""
        if not self._ask():
            return _poll(self._fd, seconds)
        end, had = time.monotonic() + seconds, False
        try:
            # In slices, for an interrupt that comes right before the wait is only seen after it.
            while not had and (left := end - time.monotonic()) > 0:
                had = self._answer.acquire(timeout=min(left, _SLICE))
        finally:
            if not had:
                had = self._answered_late()
        if self._error is not None:
            raise self._error
        return had

    def abandon(self) -> None:
        """Let the thread end, and its descriptor with it."""
        with self._state:
            self._abandoned = True
            if not self._runs:
                _close(self._fd)
            elif self._asked.locked():
                self._asked.release()

    def _ask(self) -> bool:
        with self._state:
            self._answered = False
            if self._runs:
                self._asked.release()
                return True
            self._runs = True  # before it is: else an interrupt here would close its descriptor
            try:
                start_quiet_thread(self._run)
            except RuntimeError:  # no more threads for this user, or the interpreter is ending
                self._runs = False
                return False
            return True

    def _answered_late(self) -> bool:
        """Whether the lock came at the last moment; what comes later `abandon` gives back."""
        with self._state:
            return self._answered and self._answer.acquire(blocking=False)

    def _run(self) -> None:
        while self._take_turn():
            if not self._asked.acquire(timeout=_IDLE):
                with self._state:
                    if not self._asked.acquire(blocking=False):
                        self._runs = False
                        return

    def _take_turn(self) -> bool:
        """Wait for the lock and say so; False when nobody waits for it any more."""
        if not self._abandoned:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX)
            except OSError as error:
                self._error = error
        with self._state:
            if not self._abandoned:
                self._answered = True
                self._answer.release()
                return True
        # A copy in a forked child may outlive this one: unlock, do not only close.
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        _close(self._fd)
        return False


def _locked() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # EWOULDBLOCK, and nothing else, says that another one holds it
        return False
    return True


def _poll(fd: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _try(fd):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


def _close(fd: int) -> None:
    with _guard:
        _descriptors.discard(fd)
        os.close(fd)


def _close_in_child() -> None:
    try:
        for fd in _descriptors:
            os.close(fd)
    finally:
        _descriptors.clear()
        _guard.release()


os.register_at_fork(
    before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_in_child
)
