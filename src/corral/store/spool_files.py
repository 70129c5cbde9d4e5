"""The files of the spool: one for each entry, there whole or not at all."""

from __future__ import annotations

import os
import time

from corral.kernel import files
from corral.store import statedir

SUFFIX = ".json"
LIMIT = 65_536  # bytes; what is longer is no entry


def put(state_dir: str, content: bytes) -> str:
    """Write one entry durably; returns its file.

    Raises StateDirectoryError or FileWriteError when it cannot be written.
    """
    directory = statedir.subdirectory(statedir.spool_dir(statedir.ensure(state_dir)))
    path = os.path.join(directory, f"{time.time_ns():020d}-{os.urandom(6).hex()}{SUFFIX}")
    files.atomic_write(path, content)
    return path
