"""Directories that carry a nonce, made whole and removed only while they still carry it.

Everything goes through descriptors: what was checked is what is removed, whatever happens to the
path meanwhile. While it is made, and during the last two steps of its removal, a directory is
called `.corral-<nonce>`, so that a crash in between leaves something whose name is its proof.
"""

from __future__ import annotations

import os
import stat

from corral.errors import EnumerationError, InvalidValueError, RefusedError
from corral.kernel.files import not_written, read_checked, sync_directory, write_new
from corral.model.tuples import NamedTuple

_NONCE_FILE = ".corral-nonce"
_LIMIT = 256
_PARENT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CHILD = _PARENT | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHER_MOUNT = "it is a mount point, and nothing beyond it is touched"


class _Level(NamedTuple):
    """An open directory whose `names` are still to be removed; `shown` is for messages."""

    fd: int
    name: str
    shown: str
    names: list[str]


def make_marked_directory(path: str, nonce: str) -> None:
    """Make a directory (mode 0700) that carries `nonce`; one that carries it already is enough.

    Its parent must exist. Raises RefusedError if something else is there, InvalidValueError for a
    nonce that is no name, FileWriteError if it cannot be made.
    """
    if not _is_name(nonce):
        raise InvalidValueError(f"{nonce!r} cannot be a nonce: letters and digits only")
    parent, name = os.path.split(os.path.abspath(path))
    try:
        directory = os.open(parent, _PARENT)
        try:
            _make(directory, name, nonce, path)
        finally:
            os.close(directory)
    except OSError as error:  # no space, read-only, no permission, no parent
        raise not_written(path, error) from error


def read_nonce(path: str) -> str | None:
    """The nonce that a directory carries; None if it is no directory or carries none.

    Raises EnumerationError if that cannot be told.
    """
    try:
        fd = os.open(path, _CHILD)
        try:
            return _nonce_in(fd)
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        return None  # ENOTDIR also for a symlink
    except OSError as error:
        raise EnumerationError(
            f"the nonce of {path} cannot be read: {error.strerror}", backend="files", resource=path
        ) from error


def remove_tree(path: str, nonce: str) -> list[str]:
    """Remove a directory if it carries `nonce`; why what is left was not removed, [] if all is.

    Follows no symlink, crosses no mount point, changes no permissions. A directory that is gone
    already is removed. The nonce goes last, so that a removal that was interrupted can go on.
    """
    if not _is_name(nonce):
        return [f"{path!r}: no nonce is known for it"]
    parent, name = os.path.split(os.path.abspath(path))
    try:
        directory = os.open(parent, _PARENT)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path!r}: {error.strerror}"]
    try:
        failures = _remove_marked(directory, name, nonce, path)
        # the last steps, and what a crash left of a making or of an earlier removal
        return failures or _clear(directory, _unfinished(nonce), path)
    except OSError as error:
        return [f"{path!r}: {error.strerror}"]
    finally:
        os.close(directory)


def _is_name(nonce: str) -> bool:
    return nonce.isascii() and nonce.isalnum()


def _unfinished(nonce: str) -> str:
    return f".corral-{nonce}"


def _make(directory: int, name: str, nonce: str, path: str) -> None:
    there = read_nonce(path)
    if there == nonce:
        return
    if os.path.lexists(path):
        raise RefusedError(
            f"{path} is there already and is not corral's", remedy="move it away", resource=path
        )
    new = _unfinished(nonce)
    _clear(directory, new, path)  # what a crash left
    os.mkdir(new, 0o700, dir_fd=directory)
    try:
        _fill(directory, new, nonce)
        os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        _clear(directory, new, path)
        raise
    sync_directory(directory)


def _fill(directory: int, name: str, nonce: str) -> None:
    os.chmod(name, 0o700, dir_fd=directory)  # whatever the umask
    fd = os.open(name, _CHILD, dir_fd=directory)
    try:
        write_new(fd, _NONCE_FILE, f"{nonce}\n".encode())
        sync_directory(fd)
    finally:
        os.close(fd)


def _nonce_in(directory: int) -> str | None:
    try:
        fd = os.open(_NONCE_FILE, _FILE, dir_fd=directory)
    except FileNotFoundError:
        return None
    try:
        text = read_checked(fd, _NONCE_FILE, _LIMIT).decode("ascii", "replace")
    except InvalidValueError:
        return None  # a pipe, another user's, too long: not what we wrote
    finally:
        os.close(fd)
    return text.removesuffix("\n")


def _remove_marked(directory: int, name: str, nonce: str, path: str) -> list[str]:
    try:
        fd = os.open(name, _CHILD, dir_fd=directory)
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        return [f"{path!r}: it is not the directory that was made, but a file or a symlink"]
    try:
        if _mount_of(fd) != _mount_of(directory):
            return [f"{path!r}: {_OTHER_MOUNT}"]
        if _nonce_in(fd) != nonce:
            return [f"{path!r}: it does not carry the nonce that it was made with"]
        failures = _empty(fd, path, keep=_NONCE_FILE)
        if failures:
            return failures
        if not os.path.samestat(
            os.fstat(fd), os.stat(name, dir_fd=directory, follow_symlinks=False)
        ):
            return [f"{path!r}: another directory was put in its place"]
    finally:
        os.close(fd)
    os.rename(name, _unfinished(nonce), src_dir_fd=directory, dst_dir_fd=directory)
    return []


def _clear(directory: int, name: str, shown: str) -> list[str]:
    try:
        fd = os.open(name, _CHILD, dir_fd=directory)
    except FileNotFoundError:
        return []
    try:
        if _mount_of(fd) != _mount_of(directory):
            return [f"{shown!r}: {_OTHER_MOUNT}"]
        failures = _empty(fd, shown)
    finally:
        os.close(fd)
    if not failures:
        os.rmdir(name, dir_fd=directory)
        sync_directory(directory)
    return failures


def _empty(top: int, shown: str, keep: str | None = None) -> list[str]:
    """Remove all below an open directory but the name `keep` in itself; why the rest stays."""
    walk = _Walk(top, shown, [name for name in os.listdir(top) if name != keep])
    try:
        while walk.levels:
            walk.step()
    finally:
        walk.close()
    return walk.failures


class _Walk:
    """A walk through open directories that removes what it meets, the deepest first."""

    def __init__(self, top: int, shown: str, names: list[str]) -> None:
        self.failures: list[str] = []
        self.levels = [_Level(os.dup(top), "", shown, names)]
        self._mount = _mount_of(top)
        self._stuck = 1  # so many levels from the top stay: the first, and those above a failure

    def step(self) -> None:
        """Remove one name of the deepest open directory, or that directory once it is empty."""
        level = self.levels[-1]
        if not level.names:
            self._leave()
            return
        name = level.names.pop()
        shown = f"{level.shown}/{name}"
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=level.fd, follow_symlinks=False).st_mode):
                self._enter(level, name, shown)
            else:
                os.unlink(name, dir_fd=level.fd)
        except FileNotFoundError:
            return  # somebody else has removed it
        except OSError as error:  # read-only, busy, not empty, out of descriptors, ...
            self._fail(shown, error.strerror)

    def close(self) -> None:
        """Close what an error left open."""
        while self.levels:
            os.close(self.levels.pop().fd)

    def _enter(self, level: _Level, name: str, shown: str) -> None:
        fd = os.open(name, _CHILD, dir_fd=level.fd)
        try:
            names = os.listdir(fd) if _mount_of(fd) == self._mount else None
        except OSError:
            os.close(fd)
            raise
        if names is None:
            os.close(fd)
            self._fail(shown, _OTHER_MOUNT)
        else:
            self.levels.append(_Level(fd, name, shown, names))

    def _leave(self) -> None:
        level = self.levels.pop()
        os.close(level.fd)
        depth = len(self.levels)
        if depth < self._stuck:
            self._stuck = max(1, depth)
            return
        try:
            os.rmdir(level.name, dir_fd=self.levels[-1].fd)
        except FileNotFoundError:
            return
        except OSError as error:  # something was put into it meanwhile, or it is in use
            self._fail(level.shown, error.strerror)

    def _fail(self, shown: str, reason: str | None) -> None:
        self.failures.append(f"{shown!r}: {reason}")
        self._stuck = len(self.levels)


def _mount_of(fd: int) -> tuple[str, int]:
    """What tells the mount of an open directory from others, also from a bind of the same disk."""
    try:
        info = os.open(f"/proc/self/fdinfo/{fd}", _FILE)
    except FileNotFoundError:
        return "device", os.fstat(fd).st_dev
    try:
        return "mount", int(os.read(info, 4096).partition(b"mnt_id:")[2].split()[0])
    finally:
        os.close(info)
