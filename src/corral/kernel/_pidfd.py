"""The system calls around pidfds (pidfd_open(2)): open one, see whether its process has ended."""

from __future__ import annotations

import errno
import os

_answers: dict[str, bool] = {}  # what this kernel can do does not change while it runs

# ENOSYS: older than Linux 5.3. EPERM: a container's system call filter that does not know it.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EPERM})

# ESRCH: no such process. The others: the number is a thread's now, so no process has it.
_NO_PROCESS = frozenset({errno.ESRCH, errno.ENOENT, errno.EINVAL})


def supported() -> bool:
    """Whether this system has pidfds. Raises OSError where it cannot be tried."""
    if "pidfd" not in _answers:
        _answers["pidfd"] = hasattr(os, "pidfd_open") and _try_own()
    return _answers["pidfd"]


def open_pidfd(pid: int) -> int | None:
    """A new descriptor for the process that has this pid now (it may be a zombie), else None.

    Raises OSError for any reason but that there is none.
    """
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_PROCESS:
            return None
        raise


def ended(fd: int) -> bool:
    """Whether the process, with all its threads, has ended; a zombie has."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def unique_inode(fd: int) -> int | None:
    """The pidfd's inode where it names one process for the whole boot (Linux 6.9), else None.

    Before pidfs all pidfds shared the one inode of anonymous files, as an eventfd still does: the
    device tells which it is.
    """
    status = os.fstat(fd)
    if "pidfs" not in _answers:
        anonymous = os.eventfd(0)
        try:
            _answers["pidfs"] = os.fstat(anonymous).st_dev != status.st_dev
        finally:
            os.close(anonymous)
    return status.st_ino if _answers["pidfs"] else None


def _try_own() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True
