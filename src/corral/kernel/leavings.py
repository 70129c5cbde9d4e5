"""Temporary names that say who writes under them, and what a killed writer left there."""

from __future__ import annotations

import os
import stat

from corral.errors import EnumerationError
from corral.kernel.procstat import own_namespace, read_stat
from corral.model.tuples import NamedTuple

PATTERN = ".corral-*.tmp"
_PREFIX, _SUFFIX = ".corral-", ".tmp"
_DIGITS, _RANDOM = frozenset("0123456789"), 12
_HEXADECIMAL = _DIGITS | set("abcdef")
_ENDED = "ZXx"


class _Writer(NamedTuple):
    pid: int
    start_ticks: int
    namespace: int


def temporary_name() -> str:
    """A name that nobody else uses and that names this process, as `abandoned` reads it."""
    try:
        stat_ = read_stat(os.getpid())
        ticks, namespace = stat_.start_ticks if stat_ else 0, own_namespace()
    except EnumerationError:
        # Without /proc nobody will be able to tell whether this process still writes.
        ticks, namespace = 0, 0
    middle = f"{os.getpid()}-{ticks}-{namespace}-{os.urandom(_RANDOM // 2).hex()}"
    return f"{_PREFIX}{middle}{_SUFFIX}"


def abandoned(directory: str) -> tuple[tuple[str, bool], ...]:
    """What writers that are proven dead left in a directory: (path, whether it is a directory).

    Only regular files and directories of this user's own. A directory that cannot be read has
    none.
    """
    try:
        names = os.listdir(directory)
    except OSError:
        # It was removed, or it may not be read: nothing in it is proven to be corral's.
        return ()
    found = []
    for name in names:
        writer = _writer(name)
        if writer is None or not _is_gone(writer):
            continue
        path = os.path.join(directory, name)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue  # another corral was faster
        kind = stat.S_IFMT(status.st_mode)
        if status.st_uid == os.geteuid() and kind in {stat.S_IFREG, stat.S_IFDIR}:
            found.append((path, kind == stat.S_IFDIR))
    return tuple(found)


def _writer(name: str) -> _Writer | None:
    """The process that a temporary name names, None for any other name."""
    if not (name.startswith(_PREFIX) and name.endswith(_SUFFIX)):
        return None
    *numbers, random = name[len(_PREFIX) : -len(_SUFFIX)].split("-")
    if len(random) != _RANDOM or not _HEXADECIMAL.issuperset(random):
        return None
    fields = len(_Writer._fields)
    if len(numbers) != fields or not all(n and _DIGITS.issuperset(n) for n in numbers):
        return None
    return _Writer(*(int(number[:20]) for number in numbers))


def _is_gone(writer: _Writer) -> bool:
    """Whether the process has ended; what cannot be told counts as alive."""
    try:
        if not writer.start_ticks or writer.namespace != own_namespace():
            return False
        now = read_stat(writer.pid)
    except EnumerationError:
        return False
    return now is None or now.start_ticks != writer.start_ticks or now.state in _ENDED
