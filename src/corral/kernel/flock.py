"""A lock that the kernel frees when its holder dies (flock(2)), with a time limit.

The file is never unlinked: whoever waits for it would be left with a lock on nothing. A lock file
that somebody else deletes is made anew, and still has one holder.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import stat
import time

from corral.errors import StateDirectoryError, UsageError
from corral.kernel.lockholder import encode_note, heading, holder, holders_of_deleted

__all__ = ["FileLock", "holder"]

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MODE = 0o600
_FIRST_PAUSE = 0.001
_LONGEST_PAUSE = 0.05
_LONGEST_POLL = 0.01
_GROWTH = 1.5

# A full disk is no reason not to lock, least of all to remove what fills it.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

# Every descriptor of a lock file here. A forked child must close its copies, for a flock lasts as
# long as any of them is open; the guard keeps a fork from falling between open and note.
_open_files: dict[int, FileLock] = {}
_guard = _thread.RLock()


class FileLock:
    """An exclusive lock on one file, for one holder: neither reentrant nor shared by threads."""

    __slots__ = ("_fd", "_noted", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None
        self._noted = False

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def acquire(self, timeout: float | None, *, note: str = "") -> bool:
        """Take the lock within `timeout` seconds, or however long it takes (None).

        False if somebody else holds it until then. A `note` says in words what it is held for,
        to those who ask for the `holder`. Raises StateDirectoryError when it cannot be locked at
        all, which is not the same as held.
        """
        if self.held:
            raise UsageError(f"the lock {self.path} is taken already, by this very object")
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            self._fd = self._take(deadline)
            if note and self._fd is not None:
                self._leave(self._fd, note)
        except OSError as error:  # ENOLCK, EACCES, ELOOP, EISDIR, ENOSPC, ...: not contention
            raise self._failed(error.strerror or str(error)) from error
        return self.held

    def release(self) -> None:
        """Give the lock up, also for what a C program forked off; without one, do nothing."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        if self._noted:
            self._noted = False
            status = os.fstat(fd)
            os.ftruncate(fd, min(status.st_size, len(heading(status))))
        fcntl.flock(fd, fcntl.LOCK_UN)
        _close(fd)

    def _take(self, deadline: float | None) -> int | None:
        while True:
            with _guard:
                fd = os.open(self.path, _FLAGS, _MODE)
                _open_files[fd] = self
            taken = False
            try:
                status = self._checked(fd)
                if not _lock(fd, deadline) or not self._settle(fd, status, deadline):
                    return None
                taken = self._is_current(status)
                if taken:
                    return fd
            finally:
                if not taken:
                    _close(fd)

    def _checked(self, fd: int) -> os.stat_result:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise self._failed("it is no regular file")
        if status.st_uid != os.geteuid():
            raise self._failed("it belongs to another user")
        return status

    def _is_current(self, status: os.stat_result) -> bool:
        """Whether the path still leads to the file that was opened."""
        try:
            now = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)

    def _settle(self, fd: int, status: os.stat_result, deadline: float | None) -> bool:
        """See that nobody holds a deleted predecessor, and forget what a killed holder wrote."""
        first = heading(status)
        found = os.pread(fd, len(first) + 1, 0)
        if found == first:
            return True
        if not found.startswith(first):
            real, pause = os.path.realpath(self.path), _FIRST_PAUSE
            while any(holders_of_deleted(real)):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        os.ftruncate(fd, 0)
        _write(fd, first, 0)
        return True

    def _leave(self, fd: int, note: str) -> None:
        self._noted = True
        try:
            _write(fd, encode_note(note, time.time()), len(heading(os.fstat(fd))))
        except BaseException:
            self.release()
            raise

    def _failed(self, reason: str) -> StateDirectoryError:
        return StateDirectoryError(
            f"the lock file {self.path} cannot be locked: {reason}",
            remedy="it has to be a file of this user on a local file system that is not full",
            resource=self.path,
        )


def _lock(fd: int, deadline: float | None) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # EWOULDBLOCK, and nothing else, says that another one holds it
        pass
    else:
        return True
    if deadline is None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        return True
    return _poll(fd, deadline)


def _poll(fd: int, deadline: float) -> bool:
    """Ask again and again, for the kernel's queue has no time limit.

    A thread could wait in that queue, to be left behind when time is over. But it would get the
    lock later on, if only for a moment, and whoever tries just then would find a free lock held.
    """
    pause = _FIRST_PAUSE
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(_GROWTH * pause, _LONGEST_POLL)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return True
    return False


def _write(fd: int, text: bytes, at: int) -> None:
    try:
        os.pwrite(fd, text, at)
    except OSError as error:
        if error.errno not in _FULL:
            raise


def _close(fd: int) -> None:
    with _guard:
        del _open_files[fd]
        os.close(fd)


def _forget_in_child() -> None:
    """Close, but never unlock: the lock is the parent's."""
    for fd, lock in _open_files.items():
        os.close(fd)
        lock._fd = None  # noqa: SLF001 (the class's own module)
    _open_files.clear()
    _guard.release()


os.register_at_fork(
    before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget_in_child
)
