"""Our own children: which there are, and what became of them.

Children are waited for all at once, since those whose parents ended are handed to a subreaper.
"""

from __future__ import annotations

import os

from corral.kernel._rawfile import read_all
from corral.model.tuples import NamedTuple

SIGNAL_BASE = 128  # a shell's exit status for a command that was ended by signal n is 128 + n


class Change(NamedTuple):
    """What became of a child: its exit status as a shell gives it, or None: it was stopped."""

    pid: int
    status: int | None


def take_changes() -> tuple[tuple[Change, ...], bool]:
    """Every change since the last call, and whether there are still children. Never waits."""
    found: list[Change] = []
    while True:
        try:
            info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:  # ECHILD
            return tuple(found), False
        if info is None:
            return tuple(found), True
        found.append(Change(info.si_pid, _status(info.si_code, info.si_status)))


def _status(code: int, value: int) -> int | None:
    if code == os.CLD_EXITED:
        return value
    if code in {os.CLD_KILLED, os.CLD_DUMPED}:
        return SIGNAL_BASE + value
    return None


def child_pids(pid: int | None = None) -> frozenset[int] | None:
    """The pids of all children of a process (None: this one), zombies included.

    None where the kernel does not list them; an ended process has none.
    """
    tasks = f"/proc/{os.getpid() if pid is None else pid}/task"
    found: set[int] = set()
    try:
        for thread in os.listdir(tasks):
            found.update(map(int, read_all(f"{tasks}/{thread}/children").split()))
    except (FileNotFoundError, ProcessLookupError):
        return frozenset() if pid is not None and os.path.isdir("/proc/self") else None
    except OSError:  # another platform, or a kernel without CONFIG_PROC_CHILDREN
        return None
    return frozenset(found)
