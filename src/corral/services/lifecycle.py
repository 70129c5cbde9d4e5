"""The lifecycle lock: around writing an intent, and around judging plus removing."""

from __future__ import annotations

from contextlib import contextmanager

from corral.errors import HeldError
from corral.kernel.flock import FileLock, holder
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_TIMEOUT = 30.0


@contextmanager
def hold(state_dir: str, *, what: str, timeout: float | None = DEFAULT_TIMEOUT) -> Iterator[None]:
    """Hold the lifecycle lock of a state directory.

    `timeout` in seconds, None waits as long as it takes. Raises HeldError naming the holder when
    time runs out, StateDirectoryError when the lock cannot be had at all.
    """
    statedir.ensure(state_dir)
    path = statedir.lifecycle_lock(state_dir)
    lock = FileLock(path)
    if not lock.acquire(timeout, note=what):
        raise HeldError(
            f"the lifecycle lock is held by {_holder_words(path)}",
            remedy="wait for it to end, then try again",
            resource=path,
        )
    try:
        yield
    finally:
        lock.release()


def _holder_words(path: str) -> str:
    note = holder(path)
    if note is None:
        return "another corral"
    return f"process {note.get('pid', '?')} ({note.get('command', 'corral')})"
