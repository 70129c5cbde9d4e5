"""What names a process for ever, and whether the one that was named is still there.

The order is what makes it safe: first a pidfd is opened, then the identity is read, and then the
pidfd is asked whether its process still lives. If it does, its pid was nobody else's meanwhile.
"""

from __future__ import annotations

import os

from corral.errors import CorralError, EnumerationError, InvalidValueError
from corral.kernel import _pidfd, clock
from corral.kernel.procstat import own_namespace, read_stat
from corral.model.process import Presence, ProcessIdentity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DEAD = "ZXx"
_LARGEST_PID = 2**31 - 1

_own: dict[int, ProcessIdentity] = {}  # by pid: a forked child is another process


class ProcessGoneError(CorralError):
    """The process has ended, or its pid was given to another one."""

    code = "process-gone"


def identify(pid: int) -> ProcessIdentity:
    """The identity of the process that has this pid now.

    Raises ProcessGoneError when there is none or it is a zombie, InvalidValueError for what is no
    pid, EnumerationError when it cannot be told.
    """
    if not 0 < pid <= _LARGEST_PID:
        raise InvalidValueError(f"{pid} is no process id", resource=str(pid))
    fd = _open(pid)
    try:
        return _read(pid, fd, clock.boot_id())
    finally:
        if fd is not None:
            os.close(fd)


def own_identity() -> ProcessIdentity:
    """The identity of this very process. Raises EnumerationError."""
    pid = os.getpid()
    if pid not in _own:
        _own[pid] = identify(pid)
    return _own[pid]


def presence(identity: ProcessIdentity, *, boot_id: str) -> tuple[Presence, str]:
    """Whether exactly that process still lives, and the reason in words.

    GONE is proof: another boot, no such pid, a zombie, or the pid is another process's. Whatever
    cannot be told is UNKNOWN, as is a process that was named in another pid namespace.
    """
    try:
        fd = hold(identity, boot_id)
    except ProcessGoneError as gone:
        return Presence.GONE, gone.message
    except EnumerationError as failed:
        return Presence.UNKNOWN, failed.message
    if fd is not None:
        os.close(fd)
    return Presence.ALIVE, f"process {identity.pid} is alive"


def hold(identity: ProcessIdentity, boot_id: str) -> int | None:
    """A pidfd of exactly that process, alive (None where there are no pidfds); the caller closes.

    Raises ProcessGoneError when it is proven gone, EnumerationError when that cannot be told.
    """
    pid = identity.pid
    if identity.boot_id != boot_id:
        raise ProcessGoneError(f"process {pid} lived before the machine was started again")
    if identity.pid_namespace != own_namespace():
        raise _unknown(pid, "was seen in another pid namespace")
    fd = _open(pid)
    try:
        compare(identity, _read(pid, fd, boot_id))
    except CorralError:
        if fd is not None:
            os.close(fd)
        raise
    return fd


def compare(recorded: ProcessIdentity, found: ProcessIdentity) -> None:
    """Whether what has the pid now is what was recorded; both of one boot and namespace.

    Raises ProcessGoneError if it is another process, EnumerationError if they contradict.
    """
    inodes = (recorded.pidfd_inode, found.pidfd_inode)
    same_inode = None if None in inodes else inodes[0] == inodes[1]
    same_start = recorded.start_ticks == found.start_ticks
    if same_inode is False or (same_inode is None and not same_start):
        raise ProcessGoneError(f"the pid {recorded.pid} was given to another process")
    if not same_start:  # a time namespace or a restored checkpoint
        raise _unknown(recorded.pid, "shows another start time than it had")


def encode_identity(identity: ProcessIdentity) -> tuple[tuple[str, str | int], ...]:
    """The identity as named pairs of plain values, for records and comparison."""
    pairs: tuple[tuple[str, str | int], ...] = (
        ("pid", identity.pid),
        ("start_ticks", identity.start_ticks),
        ("boot_id", identity.boot_id),
        ("pid_namespace", identity.pid_namespace),
    )
    if identity.pidfd_inode is None:
        return pairs
    return (*pairs, ("pidfd_inode", identity.pidfd_inode))


def decode_identity(
    pairs: Iterable[tuple[str, object]] | Mapping[str, object],
) -> ProcessIdentity:
    """The identity that was encoded; what a newer version added is ignored.

    Raises InvalidValueError for anything else.
    """
    try:
        values = dict(pairs)
    except (TypeError, ValueError) as error:  # no pairs at all
        raise InvalidValueError(f"a process identity is not understood: {pairs!r}") from error
    boot_id = values.get("boot_id")
    if not isinstance(boot_id, str) or not boot_id:
        raise InvalidValueError(f"a process identity has no boot id: {values!r}")
    pid, inode = _number(values, "pid", 1), values.get("pidfd_inode")
    if pid > _LARGEST_PID:
        raise InvalidValueError(f"a process identity has no valid pid: {values!r}")
    return ProcessIdentity(
        pid,
        _number(values, "start_ticks", 0),
        boot_id,
        _number(values, "pid_namespace", 0),
        None if inode is None else _number(values, "pidfd_inode", 0),
    )


def _number(values: Mapping[str, object], name: str, least: int) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidValueError(f"a process identity has no valid {name}: {values!r}")
    return value


def _open(pid: int) -> int | None:
    try:
        if not _pidfd.supported():
            return None
        fd = _pidfd.open_pidfd(pid)
    except OSError as error:  # out of descriptors or memory: nobody knows whether it is there
        raise _unknown(pid, f"cannot be pinned: {error.strerror}") from error
    if fd is None:
        raise ProcessGoneError(f"no process has the pid {pid}")
    return fd


def _read(pid: int, fd: int | None, boot_id: str) -> ProcessIdentity:
    """The identity behind a pid; with `fd`, certainly of the process that `fd` holds."""
    stat = read_stat(pid)
    if _has_ended(pid, fd) or (fd is None and stat is not None and stat.state in _DEAD):
        raise ProcessGoneError(f"process {pid} has ended")
    if stat is None:
        raise _unknown(pid, "is hidden: it lives, but is not shown to this user")
    inode = None if fd is None else _pidfd.unique_inode(fd)
    return ProcessIdentity(pid, stat.start_ticks, boot_id, own_namespace(), inode)


def _has_ended(pid: int, fd: int | None) -> bool:
    if fd is not None:
        return _pidfd.ended(fd)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # another user's: it is there
    return False


def _unknown(pid: int, why: str) -> EnumerationError:
    return EnumerationError(f"process {pid} {why}", backend="process", resource=str(pid))
