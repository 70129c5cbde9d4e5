"""One at a time makes an environment or gives it up, so that nobody ever finds half of one."""

from __future__ import annotations

import os
from binascii import crc32
from contextlib import contextmanager

from corral.errors import HeldError
from corral.kernel.flock import FileLock
from corral.services.places import locate
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.services.context import Context

PATIENCE = 60.0
# Lock files are never removed. Two worktrees that share one only wait for each other.
_FILES = 64


@contextmanager
def alone(context: Context, *, what: str, timeout: float = PATIENCE) -> Iterator[None]:
    """Be the only one who changes what the worktree of the context's directory has as a whole.

    The lifecycle lock may be taken within, never the other way round, and no command of the
    user's runs within. Raises HeldError after `timeout` seconds, StateDirectoryError.
    """
    place = locate(context.directory)
    number = crc32(os.fsencode(place.admin or place.path)) % _FILES
    directory = statedir.subdirectory(statedir.building_dir(statedir.ensure(context.state_dir)))
    lock = FileLock(os.path.join(directory, f"{number:02d}.lock"))
    if not lock.acquire(timeout, note=what):
        raise HeldError(
            f"another corral brings {place.path} up or gives it up",
            remedy="wait for it to end, then try again",
            resource=place.path,
        )
    try:
        yield
    finally:
        lock.release()
