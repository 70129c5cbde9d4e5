"""Processes: what names one for ever, and what a look at the process table yields."""

from __future__ import annotations

from enum import Enum

from corral.model.tuples import NamedTuple


class ProcessIdentity(NamedTuple):
    """What names one process, also after its pid was given to another.

    `start_ticks`: clock ticks since boot (field 22 of /proc/PID/stat; elsewhere creation time in
    hundredths of a second). `pid_namespace`: inode of the namespace, 0 where there are none.
    `pidfd_inode`: unique for the boot where the kernel has pidfs, else None.
    """

    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: int
    pidfd_inode: int | None = None

    def matches(self, other: ProcessIdentity) -> bool:
        """Whether both name the same process; inodes count only where both are known."""
        if self[:4] != other[:4]:
            return False
        if self.pidfd_inode is None or other.pidfd_inode is None:
            return True
        return self.pidfd_inode == other.pidfd_inode


class Presence(Enum):
    """Whether a process that was identified once is still there."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


class ProcessRow(NamedTuple):
    """One process as seen in one look at the process table.

    `argv` is None where it could not be read, `()` for kernel threads and zombies.
    `mark` is the value of CORRAL_OWNER in its environment; `mark_readable` tells an absent mark
    from an unreadable environment. `keep` is CORRAL_KEEP=1. `namespace` is its pid namespace's
    inode, None where it could not be read. `tty` is 0 without a controlling terminal.
    """

    pid: int
    ppid: int
    start_ticks: int
    uid: int
    session: int
    tty: int
    state: str
    comm: str
    exe: str
    argv: tuple[str, ...] | None
    mark: str | None
    mark_readable: bool
    keep: bool
    namespace: int | None

    @property
    def dead(self) -> bool:
        """Zombies and the dead hold nothing and cannot act."""
        return self.state in {"Z", "X", "x"}


class ProcessTable(NamedTuple):
    """One look at all processes: rows by pid, and where and when it was taken.

    `boot_id` and `pid_namespace` complete the identities of the rows.
    """

    rows: dict[int, ProcessRow]
    boot_id: str
    pid_namespace: int
    self_pid: int
    uid: int

    def identity(self, row: ProcessRow) -> ProcessIdentity:
        """The identity of a row, without a pidfd inode (nothing was pinned)."""
        return ProcessIdentity(row.pid, row.start_ticks, self.boot_id, self.pid_namespace)

    def above(self, pid: int) -> tuple[ProcessRow, ...]:
        """The rows above a process, nearest first; a loop in a torn table ends the walk."""
        found: list[ProcessRow] = []
        seen = {pid}
        row = self.rows.get(pid)
        while row is not None:
            row = self.rows.get(row.ppid)
            if row is None or row.pid in seen:
                break
            seen.add(row.pid)
            found.append(row)
        return tuple(found)

    def find(self, identity: ProcessIdentity) -> ProcessRow | None:
        """The live row of exactly that process, or None."""
        row = self.rows.get(identity.pid)
        if row is None or row.dead or not identity.matches(self.identity(row)):
            return None
        return row
