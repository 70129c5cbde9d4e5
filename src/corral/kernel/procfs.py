"""One quick look at all processes, read from /proc (see proc(5)).

Every file of a process is read through one handle on its directory: the kernel ties that handle to
the process, so a pid that is given away midway can never lend its files to another one's row.
Off Linux the same table comes from psutil.
"""

from __future__ import annotations

import os
import sys

from corral.kernel import clock
from corral.kernel._rawfile import read_all
from corral.kernel.procstat import failed, lineage, own_namespace, parse_stat
from corral.model.process import ProcessRow, ProcessTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# macOS has no O_PATH and never gets that far, but it imports this module.
_DIRECTORY = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC
_DEAD = "ZXx"  # what these held is freed already; asking for it may say ESRCH
_MARK = b"\0CORRAL_OWNER="
_KEEP = b"\0CORRAL_KEEP=1\0"
_DELETED = " (deleted)"


def snapshot(*, boot_id: str | None = None, brief: bool = False) -> ProcessTable:
    """All processes that this user can see, in one pass.

    The arguments are read of every process, program, mark and namespace of this user's own only.
    `brief` leaves out arguments, program and namespace, which `completed` adds where they count.
    Processes that end midway are not in the table; neither are those of other users where /proc
    is mounted with hidepid, so a parent that is missing is unknown, not gone.
    Raises EnumerationError (backend "process") when the look fails.
    """
    if sys.platform != "linux":
        from corral.kernel import _psutil_table

        return _psutil_table.snapshot(boot_id=boot_id)
    namespace, uid, self_pid = own_namespace(), os.geteuid(), os.getpid()
    rows: dict[int, ProcessRow] = {}
    try:
        for name in os.listdir("/proc"):
            if name.isdecimal() and (row := _look_at(name, uid, brief=brief)) is not None:
                rows[row.pid] = row
    except OSError as error:  # out of descriptors or memory, or /proc is gone: no table at all
        raise failed(f"/proc cannot be read: {error.strerror}") from error
    if self_pid not in rows:
        raise failed("/proc does not show this process itself")
    return ProcessTable(rows, boot_id or clock.boot_id(), namespace, self_pid, uid)


def completed(table: ProcessTable, pids: Iterable[int]) -> ProcessTable:
    """The table with the rows of `pids` read in full; those that ended since are left out."""
    if sys.platform != "linux":
        return table
    rows = dict(table.rows)
    for pid in pids:
        row = _look_at(str(pid), table.uid)
        if row is not None and row.start_ticks == rows[pid].start_ticks:
            rows[pid] = row
        else:
            del rows[pid]
    return table._replace(rows=rows)


def ancestors(pid: int) -> tuple[ProcessRow, ...]:
    """The rows above a process, nearest first, as far as this user can see them."""
    if sys.platform != "linux":
        return snapshot().above(pid)
    uid = os.geteuid()
    rows = ((_look_at(str(above), uid), ticks) for above, ticks in lineage(pid))
    return tuple(row for row, ticks in rows if row is not None and row.start_ticks == ticks)


def branch(pid: int) -> ProcessTable:
    """A table of one process and what stands above it; EnumerationError as for `snapshot`."""
    own = look_at(pid)
    rows = {row.pid: row for row in ((own,) if own is not None else ()) + ancestors(pid)}
    return ProcessTable(rows, clock.boot_id(), own_namespace(), os.getpid(), os.geteuid())


def look_at(pid: int) -> ProcessRow | None:
    """One process in full, or None when there is none (or none that this user may see)."""
    if sys.platform != "linux":
        return snapshot().rows.get(pid)
    return _look_at(str(pid), os.geteuid())


def read_row(directory: int, pid: int, uid: int, *, brief: bool = False) -> ProcessRow | None:
    """One process through `directory`, a handle on its /proc/PID; None when it ends midway.

    Only what belongs to the user `uid` shows its program, mark and namespace; a `brief` row shows
    the mark only. Raises OSError.
    """
    try:
        owner = os.fstat(directory).st_uid
        stat = parse_stat(read_all("stat", directory))
        bare = stat.kernel or stat.state in _DEAD
        exe, mark, readable, keep, namespace = "", None, bare, False, None
        argv: tuple[str, ...] | None = () if bare else None
        if not bare and stat.state != "z":
            if owner == uid:
                mark, readable, keep = _marks_of(directory)
            if not brief:
                argv = _argv_of(directory)
            if owner == uid and not brief:
                exe, namespace = _link(directory, "exe"), _namespace(directory)
                if namespace is None and parse_stat(read_all("stat", directory)).state in _DEAD:
                    return None  # it ended while it was being read
    except (FileNotFoundError, ProcessLookupError):
        return None  # ENOENT or ESRCH, depending on how far its end has come
    return ProcessRow(
        pid=pid,
        ppid=stat.ppid,
        start_ticks=stat.start_ticks,
        uid=owner,
        session=stat.session,
        tty=stat.tty,
        state=stat.state,
        comm=stat.comm,
        exe=exe.removesuffix(_DELETED),  # the file was replaced, the program's name still counts
        argv=argv,
        mark=mark,
        mark_readable=readable,
        keep=keep,
        namespace=namespace,
    )


def parse_argv(cmdline: bytes) -> tuple[str, ...]:
    """The arguments in /proc/PID/cmdline; bytes that are no UTF-8 are kept as surrogates."""
    if not cmdline:
        return ()
    return tuple(cmdline.removesuffix(b"\0").decode("utf-8", "surrogateescape").split("\0"))


def parse_marks(environ: bytes) -> tuple[str | None, bool, bool]:
    """What a process's environment says: CORRAL_OWNER, whether that is certain, CORRAL_KEEP=1.

    An empty mark is none. It is uncertain where the environment was overwritten (as setproctitle
    does) or names two owners.
    """
    text = b"\0" + environ + b"\0"
    keep = _KEEP in text
    at = text.find(_MARK)
    if at < 0:
        overwritten = bool(environ) and b"=" not in environ.partition(b"\0")[0]
        return None, not overwritten, keep
    begin = at + len(_MARK)
    end = text.index(b"\0", begin)
    value = text[begin:end]
    again = text.find(_MARK, end)
    while again >= 0:
        if not text.startswith(value + b"\0", again + len(_MARK)):
            return None, False, keep
        again = text.find(_MARK, again + 1)
    mark = value.decode("utf-8", "surrogateescape")
    return mark if mark.strip() else None, True, keep


def _look_at(name: str, uid: int, *, brief: bool = False) -> ProcessRow | None:
    try:
        directory = os.open("/proc/" + name, _DIRECTORY)
    except (FileNotFoundError, ProcessLookupError):
        return None  # it has ended since it was listed
    try:
        return read_row(directory, int(name), uid, brief=brief)
    except PermissionError:
        return None  # another user's, under hidepid=1
    finally:
        os.close(directory)


def _argv_of(directory: int) -> tuple[str, ...] | None:
    try:
        return parse_argv(read_all("cmdline", directory))
    except PermissionError:
        return None


def _marks_of(directory: int) -> tuple[str | None, bool, bool]:
    try:
        return parse_marks(read_all("environ", directory))
    except PermissionError:
        return None, False, False  # a program that may not be traced, such as an agent with keys


def _link(directory: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=directory)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # a zombie has no program; one that may not be traced does not show it


def _namespace(directory: int) -> int | None:
    inode = _link(directory, "ns/pid")[len("pid:[") : -1]
    return int(inode) if inode else None
