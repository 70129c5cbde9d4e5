"""The process table from psutil, where there is no /proc (macOS, BSD).

What a hardened system program carries in its environment cannot be read there; pid namespaces do
not exist.
"""

from __future__ import annotations

import os

import psutil

from corral.errors import EnumerationError
from corral.kernel import clock
from corral.kernel.procstat import Stat
from corral.model.process import ProcessRow, ProcessTable

_STATES = {
    psutil.STATUS_RUNNING: "R",
    psutil.STATUS_SLEEPING: "S",
    psutil.STATUS_DISK_SLEEP: "D",
    psutil.STATUS_STOPPED: "T",
    psutil.STATUS_TRACING_STOP: "t",
    psutil.STATUS_IDLE: "I",
    psutil.STATUS_ZOMBIE: "Z",
    psutil.STATUS_DEAD: "X",
}
_HUNDREDTHS = 100


def snapshot(*, boot_id: str | None = None) -> ProcessTable:
    """All processes, as `corral.kernel.procfs.snapshot` has them. Raises EnumerationError."""
    uid, self_pid = os.geteuid(), os.getpid()
    rows: dict[int, ProcessRow] = {}
    try:
        for process in psutil.process_iter():
            row = read_row(process, uid)
            if row is not None:
                rows[row.pid] = row
    except (psutil.Error, OSError) as error:  # the listing itself was refused
        raise _failed(f"the processes cannot be listed: {error}") from error
    if self_pid not in rows:
        raise _failed("the list of processes does not hold this process itself")
    return ProcessTable(rows, boot_id or clock.boot_id(), 0, self_pid, uid)


def read_stat(pid: int) -> Stat | None:
    """The state of one process, None when there is none. Raises EnumerationError."""
    try:
        return _stat_of(psutil.Process(pid))
    except (psutil.NoSuchProcess, ProcessLookupError):
        return None
    except (psutil.Error, OSError) as error:  # refused: nobody knows whether it is there
        raise _failed(f"process {pid} cannot be read: {error}") from error


def read_row(process: psutil.Process, uid: int) -> ProcessRow | None:
    """One process; None when it ends midway or the system hides it."""
    try:
        with process.oneshot():
            stat, owner = _stat_of(process), process.uids().effective
            dead = stat.state in "ZX"
            exe, mark, readable, keep = "", None, dead, False
            if owner == uid and not dead:
                exe = _exe_of(process)
                mark, readable, keep = _marks_of(process)
            argv = () if dead else _argv_of(process)
    except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
        return None
    return ProcessRow(
        pid=process.pid,
        ppid=stat.ppid,
        start_ticks=stat.start_ticks,
        uid=owner,
        session=stat.session,
        tty=stat.tty,
        state=stat.state,
        comm=stat.comm,
        exe=exe,
        argv=argv,
        mark=mark,
        mark_readable=readable,
        keep=keep,
        namespace=0,
    )


def _stat_of(process: psutil.Process) -> Stat:
    with process.oneshot():
        return Stat(
            comm=process.name(),
            state=_STATES.get(process.status(), "S"),
            ppid=process.ppid(),
            session=_session_of(process.pid),
            tty=1 if process.terminal() else 0,
            kernel=False,
            start_ticks=round(process.create_time() * _HUNDREDTHS),
        )


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except PermissionError:
        return 0  # some systems tell only those of the same session


def _exe_of(process: psutil.Process) -> str:
    try:
        return process.exe()
    except psutil.AccessDenied:
        return ""


def _argv_of(process: psutil.Process) -> tuple[str, ...] | None:
    try:
        return tuple(process.cmdline())
    except psutil.AccessDenied:
        return None


def _marks_of(process: psutil.Process) -> tuple[str | None, bool, bool]:
    try:
        environ = process.environ()
    except psutil.AccessDenied:
        return None, False, False
    mark = environ.get("CORRAL_OWNER", "")
    # macOS shows an empty environment for its own hardened programs, so that proves nothing
    return mark if mark.strip() else None, bool(environ), environ.get("CORRAL_KEEP") == "1"


def _failed(message: str) -> EnumerationError:
    return EnumerationError(message, backend="process")
