"""Locks that the kernel holds: one driver at a time, and a dead one frees it at once."""

from __future__ import annotations

import json
import os
import time

from corral.decide.durations import local_time
from corral.decide.locks import SUFFIX, file_name, holder_words, note_of, read_note, scope_words
from corral.decide.releases import canonicalize_release_id
from corral.errors import HeldError, RegistryError, StateDirectoryError, UsageError
from corral.kernel import procfs
from corral.kernel.flock import FileLock, holder
from corral.model.lock import LockHolder, LockName, LockScope, LockState
from corral.services.environments import find
from corral.services.owners import acting, named_session
from corral.services.places import common_directory
from corral.store import fences, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from corral.services.context import Context

_LONGEST_COMMAND = 500


class HeldLock:
    """A lock that this process holds; a context manager that gives it up at the end.

    `fence` is larger than the number of every holder before, `lock` has its canonical `name`, its
    `scope` and `place`, `path` is the locked file. A forked child does not hold it.
    """

    __slots__ = ("_file", "_pid", "fence", "lock", "path")

    def __init__(self, lock: LockName, file: FileLock, fence: int) -> None:
        self.lock = lock
        self.path = file.path
        self.fence = fence
        self._file = file
        self._pid = os.getpid()

    @property
    def held(self) -> bool:
        """Whether it is still held, by this very process."""
        return self._pid == os.getpid() and self._file.held

    def release(self) -> None:
        """Give it up; without effect when that is done already, or in a forked child."""
        if self.held:
            self._file.release()

    def __repr__(self) -> str:
        state = "held" if self.held else "not held"
        return f"HeldLock({self.lock.name!r}, fence {self.fence}, {state})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def lock_named(name: str, scope: LockScope | None, directory: str) -> LockName:
    """The lock of that name. Without a scope: `repo` inside a repository, else `machine`.

    Raises InvalidValueError for an empty name, UsageError for `repo` outside of a repository.
    """
    canonical = canonicalize_release_id(name)
    place = common_directory(directory) if scope is not LockScope.MACHINE else ""
    if scope is LockScope.REPO and not place:
        raise UsageError(
            f"--scope repo: {directory} is in no git repository",
            remedy="change to the repository, or lock with --scope machine",
        )
    return LockName(canonical, LockScope.REPO if place else LockScope.MACHINE, place)


def take_lock(
    context: Context, lock: LockName, *, timeout: float | None = 0.0, command: str = ""
) -> HeldLock:
    """Like `try_lock`, but HeldError, naming the holder, when somebody else holds it."""
    held = try_lock(context, lock, timeout=timeout, command=command)
    if held is None:
        raise _held_by_another(context, lock)
    return held


def try_lock(
    context: Context, lock: LockName, *, timeout: float | None = 0.0, command: str = ""
) -> HeldLock | None:
    """Take the lock within `timeout` seconds (None: however long it takes).

    `command` tells others in words what it is held for. None when it is held by somebody else
    until then. That is not the same as a lock that cannot be taken at all: StateDirectoryError,
    RegistryError.
    """
    note = json.dumps(note_of(lock, _self_of(context, command)))
    file = FileLock(_file_of(context, lock))
    if not file.acquire(timeout, note=note):
        return None
    try:
        fence = _next_fence(context, file_name(lock))
    except BaseException:
        file.release()
        raise
    return HeldLock(lock, file, fence)


def _next_fence(context: Context, name: str) -> int:
    try:
        with context.registry.write() as conn:
            return fences.next_fence(conn, name)
    except HeldError as error:  # the registry's gate: nobody holds the lock itself
        raise RegistryError(
            f"no fence number can be had: {error.message}", remedy=error.remedy
        ) from error


def _file_of(context: Context, lock: LockName) -> str:
    statedir.ensure(context.state_dir)
    directory = statedir.locks_dir(context.state_dir)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:  # a file in its place, a full or read-only disk
        raise StateDirectoryError(
            f"the directory of locks {directory} cannot be made: {error.strerror}",
            remedy="see that it is a directory of yours and that the disk has room",
            resource=directory,
        ) from error
    return os.path.join(directory, file_name(lock))


def _self_of(context: Context, command: str) -> LockHolder:
    known = acting(context, find(context))
    return LockHolder(
        pid=context.pid,
        command=command[:_LONGEST_COMMAND],
        owner=known.owner if known else None,
        session=known.session if known else named_session(context),
        directory=context.directory,
    )


def _held_by_another(context: Context, lock: LockName) -> HeldError:
    state = state_of(_file_of(context, lock))
    if state is None:
        words = "was held until a moment ago"
    else:
        words = f"is held by {words_of(state.holder)}"
        if _is_above(state.holder.pid, context.pid):
            words += "; this command runs below it"
    return HeldError(
        f"the lock {lock.name!r} {scope_words(lock)} {words}",
        remedy="wait for it with --wait SECONDS; corral locks shows all",
        resource=lock.name,
    )


def words_of(found: LockHolder) -> str:
    """A holder in words, with the local time."""
    at = local_time(found.since or 0.0)
    return holder_words(found, now=time.time(), at=at)


def _is_above(pid: int, below: int) -> bool:
    rows, seen = procfs.snapshot().rows, set()
    while (row := rows.get(below)) is not None and below not in seen:
        seen.add(below)
        below = row.ppid
        if below == pid:
            return True
    return False


def state_of(path: str) -> LockState | None:
    """Who holds the lock whose file is at `path`; None where nobody does."""
    found = holder(path)
    if found is None:
        return None
    lock, who = read_note(found, _decoded(found.get("command")))
    return LockState(path, lock, who)


def _decoded(text: Any) -> dict[str, Any]:
    """What `take_lock` left; {} for a command line, which the kernel's table led to."""
    try:
        more = json.loads(text or "")
    except ValueError:
        # The holder has not written its note yet.
        return {}
    return more if isinstance(more, dict) else {}


def held_locks(context: Context) -> tuple[LockState, ...]:
    """Every lock that is held now, by name. Disturbs nobody who is about to take one.

    Raises StateDirectoryError and RegistryError where it cannot be told.
    """
    if not statedir.is_there(context.state_dir):
        return ()
    with context.registry.read() as conn:
        numbers = fences.fences(conn)
    directory = statedir.locks_dir(context.state_dir)
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        # Nothing was ever locked.
        return ()
    except OSError as error:
        raise StateDirectoryError(
            f"the directory of locks {directory} cannot be read: {error.strerror}",
            remedy="see that it is a directory of yours, and readable",
            resource=directory,
        ) from error
    paths = (os.path.join(directory, name) for name in names if name.endswith(SUFFIX))
    found = (_numbered(state, numbers) for path in paths if (state := state_of(path)) is not None)
    return tuple(sorted(found, key=_order))


def _order(state: LockState) -> tuple[str, str]:
    return (state.lock.name if state.lock else "", state.path)


def _numbered(state: LockState, numbers: dict[str, int]) -> LockState:
    fence = numbers.get(os.path.basename(state.path))
    return state._replace(holder=state.holder._replace(fence=fence))
