"""Small files of the kernel's, read with as few system calls as there can be."""

from __future__ import annotations

import os

_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_CHUNK = 16384


def read_all(path: str, directory: int | None = None) -> bytes:
    """The whole content; `path` may be relative to an open `directory`. Raises OSError."""
    fd = os.open(path, _FLAGS, dir_fd=directory)
    try:
        data = chunk = os.read(fd, _CHUNK)
        while chunk:
            chunk = os.read(fd, _CHUNK)
            data += chunk
        return data
    finally:
        os.close(fd)
