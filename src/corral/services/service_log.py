"""The log of a detached service: written by the service itself, kept below a size, followed.

A service writes straight into the file, so nothing is lost when corral is killed. The file is cut
by copying it to `<log>.1` and truncating it; what is written in between those two is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from corral.errors import StateDirectoryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_LIMIT = 10 * 1024 * 1024
TAIL_LINES = 20
_TAIL_BYTES = 8192
_CHUNK = 1 << 16
_MODE = 0o600
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW


def log_path(environment_directory: str, name: str) -> str:
    """Where the log of a service of that name is."""
    return os.path.join(environment_directory, "logs", f"{name}.log")


def previous(path: str) -> str:
    """Where the part of a log before the last cut is."""
    return f"{path}.1"


def start_log(path: str) -> int:
    """Begin an empty log and return a descriptor that appends to it; the one before becomes .1.

    Raises StateDirectoryError when the file cannot be made.
    """
    try:
        with contextlib.suppress(FileExistsError):  # there is a log of another service
            os.mkdir(os.path.dirname(path), 0o700)
        try:
            if os.lstat(path).st_size:
                os.replace(path, previous(path))
            else:
                os.unlink(path)
        except FileNotFoundError:  # the first start under this name
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _OPEN
        return os.open(path, flags, _MODE)
    except OSError as error:  # full, read-only, no permission
        raise StateDirectoryError(
            f"the log {path} cannot be written: {error.strerror}",
            remedy="free some space, or give the directory back to this user",
        ) from error


def cut_log(path: str, limit: int = SIZE_LIMIT) -> bool:
    """Move what the log holds to `.1` once it is larger than `limit` bytes; whether it was.

    Of a log that outgrew twice the limit only the end is kept, and nothing where the disk is full.
    Raises OSError.
    """
    source = os.open(path, os.O_RDWR | _OPEN)
    try:
        size = os.fstat(source).st_size
        if size <= limit:
            return False
        os.lseek(source, size - limit if size > 2 * limit else 0, os.SEEK_SET)
        try:
            _move(source, path, limit)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            if os.path.lexists(_draft(path)):
                os.unlink(_draft(path))
        os.ftruncate(source, 0)
        return True
    finally:
        os.close(source)


def _draft(path: str) -> str:
    return f"{path}.cut"


def _move(source: int, path: str, limit: int) -> None:
    """Copy from where `source` stands to `.1`, as long as one can keep up with the writer."""
    target = os.open(_draft(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OPEN, _MODE)
    try:
        _copy(source, target, most=2 * limit)
        # a reader that finds the log cut must find the rest of what it was reading here
        os.replace(_draft(path), previous(path))
        _copy(source, target, most=limit)
    finally:
        os.close(target)


def _copy(source: int, target: int, *, most: int) -> None:
    """Copy what is there and what is appended meanwhile, as long as one can keep up."""
    while most > 0 and (chunk := os.read(source, _CHUNK)):
        most -= len(chunk)
        os.write(target, chunk)


def open_log(path: str) -> int | None:
    """A descriptor that reads the log, or None where there is no (regular) file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _OPEN)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return None  # a symlink, which corral did not make
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def last_lines(path: str, lines: int = TAIL_LINES) -> str:
    """The last lines of the log as text, "" where there are none."""
    text = tail(path, _TAIL_BYTES).decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-lines:])


def tail(path: str, limit: int) -> bytes:
    """The last `limit` bytes of the log, b"" where there is none."""
    fd = open_log(path)
    if fd is None:
        return b""
    try:
        return os.pread(fd, limit, max(0, os.fstat(fd).st_size - limit))
    finally:
        os.close(fd)


def follow(path: str, write: Callable[[bytes], None], wait: Callable[[], bool]) -> None:
    """Write what the log holds and what is appended, until `wait()` says that the service ended.

    `wait` pauses for a moment. A log that was cut, or begun anew, is read on from the right place.
    """
    reader = _Reader(path)
    try:
        ended = False
        while not ended:
            ended = wait() if not reader.pass_on(write) else False
        reader.pass_on(write)
    finally:
        reader.close()


class _Reader:
    """A place in a log that may be cut or replaced under the reader."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = open_log(path)
        self._at = 0

    def pass_on(self, write: Callable[[bytes], None]) -> bool:
        """Write all that is new; whether there was anything."""
        if self._fd is None:
            self._fd = open_log(self._path)
            if self._fd is None:
                return False
        if os.fstat(self._fd).st_size < self._at:
            self._at = self._finish_cut(write)
        found = self._read(self._fd, write)
        return self._replaced() or found

    def _read(self, fd: int, write: Callable[[bytes], None]) -> bool:
        begin = self._at
        while chunk := os.pread(fd, _CHUNK, self._at):
            write(chunk)
            self._at += len(chunk)
        return self._at > begin

    def _finish_cut(self, write: Callable[[bytes], None]) -> int:
        """Write what was moved to `.1` before it could be read; the log goes on at its start."""
        fd = open_log(previous(self._path))
        if fd is not None:
            try:
                if os.fstat(fd).st_size >= self._at:
                    self._read(fd, write)
            finally:
                os.close(fd)
        return 0

    def _replaced(self) -> bool:
        """Go on with the log of a new start, if there is one."""
        try:
            now = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if self._fd is None or now.st_ino == os.fstat(self._fd).st_ino:
            return False
        self.close()
        self._fd, self._at = open_log(self._path), 0
        return True

    def close(self) -> None:
        """Close what is open."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
