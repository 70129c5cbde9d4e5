"""The file from which an agent's shells read their variables: lines are added, whole or not."""

from __future__ import annotations

import os

from corral.render.shell import SPECIAL, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_PRINTED = 0x20  # below are the control characters


def add_exports(path: str, variables: Iterable[tuple[str, str]]) -> None:
    """Append an `export` line for each variable; what others wrote there stays.

    Names that a shell keeps for itself are left out: every command would fail at that line.
    Raises OSError when it cannot be written; then the file is as it was: half a line would be
    half a value.
    """
    lines = "".join(
        f"export {name}={_one_line(value)}\n" for name, value in variables if name not in SPECIAL
    )
    data = lines.encode("utf-8", "surrogateescape")
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            data = b"\n" + data
        written = os.write(descriptor, data)
        if written < len(data):
            os.ftruncate(descriptor, size)
            raise OSError(f"{path} could not be written to its end")
    finally:
        os.close(descriptor)


def _one_line(value: str) -> str:
    """The value as one word on one line: no line of a value may look like a line of the file.

    Only bash, zsh and the like know `$'...'`; to any other shell it is as inert, since no quote
    stands within it.
    """
    if value.isprintable():
        return quote(value)
    text = value.replace("\\", "\\\\").replace("'", "\\047")
    return "$'" + "".join(f"\\{ord(c):03o}" if ord(c) < _PRINTED else c for c in text) + "'"
