"""Single processes, as /proc/PID/stat tells of them (see proc(5)); also who stands above one.

Light on purpose: a hook that only says who called it imports nothing else of the process table.
Off Linux the same comes from psutil.
"""

from __future__ import annotations

import os
import sys

from corral.errors import EnumerationError
from corral.kernel._rawfile import read_all
from corral.model.tuples import NamedTuple

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
_DEPTH = 1000  # more ancestors than any process has

_namespaces: dict[int, int] = {}  # by own pid, so that a fork into a new namespace looks again


class Stat(NamedTuple):
    """What /proc/PID/stat tells. `state` is z where the first thread has ended but others live.

    `kernel`: a kernel thread, which has neither arguments nor environment.
    """

    comm: str
    state: str
    ppid: int
    session: int
    tty: int
    kernel: bool
    start_ticks: int


def own_namespace() -> int:
    """The inode of this process's pid namespace, 0 on systems without such a thing.

    Raises EnumerationError where /proc is missing or belongs to another pid namespace: its pids
    would then mean other processes than the ones that a signal reaches.
    """
    if sys.platform != "linux":
        return 0
    pid = os.getpid()
    if pid not in _namespaces:
        try:
            status = read_all("/proc/self/status")
            inode = os.stat("/proc/self/ns/pid").st_ino
        except OSError as error:  # whatever the cause, pids cannot be interpreted
            raise failed(f"/proc does not show this process: {error.strerror}") from error
        if len(status.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()) > 1:
            raise failed("/proc belongs to another pid namespace than this process")
        _namespaces[pid] = inode
    return _namespaces[pid]


def read_stat(pid: int) -> Stat | None:
    """The state of one process, None when there is none (or none that this user may see).

    Raises EnumerationError for any other reason why it cannot be read.
    """
    if sys.platform != "linux":
        from corral.kernel import _psutil_table

        return _psutil_table.read_stat(pid)
    try:
        return parse_stat(read_all(f"/proc/{pid}/stat"))
    except (FileNotFoundError, ProcessLookupError):
        return None  # ENOENT before, ESRCH while it is being read
    except OSError as error:  # EACCES, EMFILE, ...: nobody knows whether it is there
        raise failed(f"process {pid} cannot be read: {error.strerror}") from error


def lineage(pid: int) -> tuple[tuple[int, int], ...]:
    """(pid, start ticks) of the processes above one, nearest first.

    It ends where a parent cannot be seen. A parent that ends midway hands its children on, so the
    child is then asked again; a pid that is younger than its child is not its parent.
    """
    found: list[tuple[int, int]] = []
    child, stat = pid, read_stat(pid)
    while stat is not None and stat.ppid > 0 and len(found) < _DEPTH:
        parent = read_stat(stat.ppid)
        if parent is None or parent.start_ticks > stat.start_ticks:
            again = read_stat(child)
            if again is None or again.ppid == stat.ppid:
                break
            stat = again
            continue
        child, stat = stat.ppid, parent
        found.append((child, parent.start_ticks))
    return tuple(found)


def parse_stat(line: bytes) -> Stat:
    """The fields of /proc/PID/stat; a name may hold any byte, also `) R 1`. EnumerationError."""
    begin, end = line.find(b"("), line.rfind(b")")
    fields = line[end + 1 :].split()  # from field 3, the state, on
    try:
        state = fields[0].decode("ascii")
        if state == "Z" and int(fields[17]) > 1:
            state = "z"  # the first thread is a zombie, the process is not
        return Stat(
            comm=line[begin + 1 : end].decode("utf-8", "surrogateescape"),
            state=state,
            ppid=int(fields[1]),
            session=int(fields[3]),
            tty=int(fields[4]),
            kernel=bool(int(fields[6]) & _KERNEL_THREAD),
            start_ticks=int(fields[19]),
        )
    except (IndexError, ValueError) as error:  # torn, or no kernel that we know
        raise failed(f"a stat line of /proc is not understood: {line[:80]!r}") from error


def failed(message: str) -> EnumerationError:
    """The error to raise when /proc did not show what it must."""
    return EnumerationError(
        message,
        backend="process",
        remedy="mount the /proc of this process's own pid namespace and let this user read it",
    )
