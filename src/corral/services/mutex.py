"""The conductor mutex: one driver at a time for a release, for Python programs."""

from __future__ import annotations

import sys

from corral.errors import InvalidValueError
from corral.model.lock import LockScope
from corral.services.calling import calling_context
from corral.services.locks import lock_named, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.services.locks import HeldLock


def acquire_conductor_mutex(
    release_id: str,
    blocking: bool = False,  # noqa: FBT001, FBT002 (as in the locks of the standard library)
    *,
    timeout: float | None = None,
    scope: str | None = None,
    directory: str | None = None,
) -> HeldLock | None:
    """Take the lock of a release; None when another driver holds it, and then do not drive.

    All spellings of a release are one lock (see `canonicalize_release_id`), which is also that of
    `corral lock`. `scope` is "repo" (all worktrees of the clone that `directory` or the working
    directory lies in; the default there) or "machine". With `blocking` it waits, at most `timeout`
    seconds if that is given. The lock is the kernel's: it is free again when this process ends,
    however it ends, and a forked child does not have it. Its `fence` grows from holder to holder.

    Raises InvalidValueError for an empty id, UsageError for a scope that there is not, and
    StateDirectoryError or RegistryError when the lock cannot be taken at all: that is not None.
    """
    if timeout is not None and not blocking:
        raise InvalidValueError("a timeout has no meaning without blocking=True")
    context = calling_context(directory)
    lock = lock_named(release_id, _scope(scope), context.directory)
    return try_lock(
        context, lock, timeout=timeout if blocking else 0.0, command=" ".join(sys.orig_argv)
    )


def release_conductor_mutex(mutex: HeldLock | None) -> None:
    """Give the lock of a release up. Without effect for None, twice, and in a forked child."""
    if mutex is not None:
        mutex.release()


def _scope(scope: str | None) -> LockScope | None:
    if scope is None:
        return None
    for known in LockScope:
        if known.value == scope:
            return known
    names = " or ".join(known.value for known in LockScope)
    raise InvalidValueError(f"there is no scope {scope!r}", remedy=f"choose {names}")
