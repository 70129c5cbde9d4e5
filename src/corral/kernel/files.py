"""Single files, written whole or not at all, and read only if they are what they should be."""

from __future__ import annotations

import errno
import os
import stat

from corral.errors import CorralError, InvalidValueError
from corral.kernel.leavings import temporary_name

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EXISTING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_DEFAULT_LIMIT = 16 * 1024 * 1024

_REMEDIES = {
    errno.ENOSPC: "free some space on its file system",
    errno.EDQUOT: "free some of this user's quota on its file system",
    errno.EROFS: "its file system is mounted read-only: mount it writable",
    errno.EACCES: "let this user write to its directory",
    errno.EPERM: "let this user write to its directory",
    errno.ENOENT: "make its directory first",
    errno.ENAMETOOLONG: "choose a shorter name",
}


class FileWriteError(CorralError):
    """A file or directory could not be written; what was there before is unchanged."""

    code = "write-failed"


def open_directory(path: str) -> int:
    """A descriptor of the directory itself, which is no symlink; the caller closes it.

    Raises InvalidValueError if it is anything else, OSError if it cannot be opened.
    """
    try:
        return os.open(path, _DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        # ENOTDIR for a symlink too: O_DIRECTORY is looked at first
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            kind = "a symbolic link" if os.path.islink(path) else "no directory"
            raise InvalidValueError(f"{path} is {kind}", resource=path) from error
        raise


def read_regular(path: str, limit: int = _DEFAULT_LIMIT) -> bytes:
    """The content of a regular file of this user's own, which is no symlink.

    Never waits (for a pipe's writer) and never follows. Raises FileNotFoundError if there is
    none, InvalidValueError if it is anything else or longer than `limit` bytes, OSError if it
    cannot be read.
    """
    try:
        fd = os.open(path, _EXISTING)
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            raise
        kind = "a symbolic link" if os.path.islink(path) else "no regular file"
        raise InvalidValueError(f"{path} is {kind}", resource=path) from error
    try:
        return read_checked(fd, path, limit)
    finally:
        os.close(fd)


def read_checked(fd: int, path: str, limit: int) -> bytes:
    """As `read_regular`, from a descriptor; `path` is for messages only."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise InvalidValueError(f"{path} is no regular file", resource=path)
    if status.st_uid != os.geteuid():
        raise InvalidValueError(f"{path} belongs to another user", resource=path)
    data = b""
    while len(data) <= limit and (chunk := os.read(fd, limit + 1 - len(data))):
        data += chunk
    if len(data) > limit:
        raise InvalidValueError(f"{path} is longer than {limit} bytes", resource=path)
    return data


def atomic_write(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that at any time it has its old content or the new one, also after a crash.

    Raises InvalidValueError where a symlink or anything but a regular file is in its place,
    FileWriteError where it cannot be written; neither leaves anything behind.
    """
    parent, name = os.path.split(path)
    try:
        directory = os.open(parent or ".", _DIRECTORY)
    except OSError as error:
        raise not_written(path, error) from error
    try:
        _refuse_others(directory, name, path)
        _replace(directory, name, data, mode)
    except OSError as error:  # no space, read-only, no permission, ...
        raise not_written(path, error) from error
    finally:
        os.close(directory)


def write_new(directory: int, name: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file that must not exist yet, durably, below an open directory. Raises OSError."""
    fd = os.open(name, _NEW, mode, dir_fd=directory)
    try:
        os.fchmod(fd, mode)  # whatever the umask
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_directory(directory: int) -> None:
    """Make the names in an open directory durable. Raises OSError."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot, such as some of FUSE
            raise


def not_written(path: str, error: OSError) -> FileWriteError:
    """The error to raise for what could not be written, with its remedy."""
    return FileWriteError(
        f"{path} cannot be written: {error.strerror}",
        remedy=_REMEDIES.get(error.errno or 0, ""),
        resource=path,
    )


def _refuse_others(directory: int, name: str, path: str) -> None:
    try:
        there = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(there.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(there.st_mode) else "no regular file"
        raise InvalidValueError(
            f"{path} is {kind}, so it is not replaced", remedy="move it away", resource=path
        )


def _replace(directory: int, name: str, data: bytes, mode: int) -> None:
    new = temporary_name()
    try:
        write_new(directory, new, data, mode)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        _drop(directory, new)
        raise
    sync_directory(directory)


def _drop(directory: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:  # it was never made, or the directory became read-only: the cause is raised
        return
