"""Links and copies from the main checkout into a worktree: never over anything, never out of it."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

from corral.errors import RefusedError
from corral.kernel.leavings import temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK = 1_048_576


def is_inside(root: str, path: str) -> bool:
    """Whether the real place of `path` lies below the real `root`."""
    real = os.path.realpath(path)
    return real.startswith(os.path.realpath(root).rstrip("/") + "/")


def refuse_escape(root: str, relative: str) -> str:
    """The absolute path of `relative`; RefusedError when its directory leads out of `root`."""
    path = os.path.join(root, relative)
    parent = os.path.dirname(os.path.normpath(path))
    if parent != root.rstrip("/") and not is_inside(root, parent):
        raise RefusedError(
            f"{relative} leads out of {root}: a directory on its way is a symlink",
            remedy="name a place within the project",
            resource=path,
        )
    return os.path.normpath(path)


def link(source: str, target: str) -> None:
    """Make `target` a symlink to `source`. FileExistsError when something is there."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.symlink(source, target)


def copy(source: str, target: str) -> None:
    """Copy a file or directory to a name that is free. FileExistsError when something is there.

    Symlinks within a directory are copied as symlinks. What was copied shows up at once or, when
    copying fails, not at all.
    """
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        raise FileExistsError(target)
    temporary = os.path.join(os.path.dirname(target), temporary_name())
    try:
        _copy(source, temporary)
        if os.path.isdir(temporary):
            os.rename(temporary, target)
        else:
            os.link(temporary, target)
    finally:
        remove_tree(temporary)


def _copy(source: str, target: str) -> None:
    status = os.lstat(source)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISDIR(status.st_mode):
        os.mkdir(target, 0o700)
        for name in os.listdir(source):
            _copy(os.path.join(source, name), os.path.join(target, name))
        os.chmod(target, stat.S_IMODE(status.st_mode))
    elif stat.S_ISREG(status.st_mode):
        _copy_file(source, target, stat.S_IMODE(status.st_mode))


def _copy_file(source: str, target: str, mode: int) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        writing = os.open(target, flags, 0o600)
        try:
            while chunk := os.read(reading, _CHUNK):
                _write_all(writing, chunk)
            os.fchmod(writing, mode)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def remove_tree(path: str) -> None:
    """Remove a file, symlink or directory that this module made; nothing there is fine."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(path)
        return
    for name in os.listdir(path):
        remove_tree(os.path.join(path, name))
    os.rmdir(path)


def digest(path: str) -> str:
    """What is at a path, as one hash: kind, names and content. FileNotFoundError if nothing is."""
    found = sha256()
    for part in _parts(path):
        found.update(f"{len(part)} ".encode())
        found.update(part)
    return found.hexdigest()


def _parts(path: str) -> Iterator[bytes]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        yield b"link"
        yield os.fsencode(os.readlink(path))
    elif stat.S_ISDIR(status.st_mode):
        yield b"directory"
        for name in sorted(os.listdir(path)):
            yield os.fsencode(name)
            yield from _parts(os.path.join(path, name))
    elif stat.S_ISREG(status.st_mode):
        yield b"file"
        yield _content(path)
    else:
        yield b"special"


def _content(path: str) -> bytes:
    found = sha256()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        while chunk := os.read(descriptor, _CHUNK):
            found.update(chunk)
    finally:
        os.close(descriptor)
    return found.digest()
