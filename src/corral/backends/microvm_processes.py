"""The microVMs that run: found by their command lines, and jailed ones by their root directory."""

from __future__ import annotations

import os

from corral.decide import microvms as rules
from corral.kernel import identity as identities
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from corral.contracts import View
    from corral.model.process import ProcessRow, ProcessTable

_Inode = tuple[int, int]


def directories_in(table: ProcessTable, view: View) -> dict[int, str]:
    """The run directory of each microVM in the table, by pid."""
    root = statedir.run_dir(view.state_dir)
    jails = _jails(root)
    found = {}
    for row in table.rows.values():
        if _may_be_ours(row, table.uid) and (directory := directory_of(row, root, jails)):
            found[row.pid] = directory
    return found


def running(table: ProcessTable, view: View) -> Iterator[rules.Running]:
    """Every microVM of this user's that runs, each with the identity that pins it."""
    for pid, directory in sorted(directories_in(table, view).items()):
        row = table.rows[pid]
        try:
            found = identities.identify(pid)
        except identities.ProcessGoneError:
            continue  # it ended since the look
        if found.matches(table.identity(row)):
            yield rules.Running(pid, identities.encode_identity(found), directory, row.keep)


def directory_of(row: ProcessRow, root: str, jails: Mapping[_Inode, str]) -> str:
    """The run directory of one process, "" if it is no microVM of corral's."""
    argv = row.argv or ()
    if row.dead or not rules.is_firecracker(argv, row.exe):
        return ""
    return rules.run_directory(argv, root) or _jailed(row.pid, jails)


def jails_of(state_dir: str) -> dict[_Inode, str]:
    """The run directories whose jails are known, by the inode of each jail's root."""
    return _jails(statedir.run_dir(state_dir))


def _may_be_ours(row: ProcessRow, uid: int) -> bool:
    """A jailer changes the user, which only root can do and undo."""
    return uid in {row.uid, 0}


def _jailed(pid: int, jails: Mapping[_Inode, str]) -> str:
    """A jailed process names paths of its own root: the root itself must be one of ours."""
    if not jails:
        return ""
    try:
        status = os.stat(f"/proc/{pid}/root")
    except OSError:  # it ended, or may not be looked at: then it is not shown to be ours
        return ""
    return jails.get((status.st_dev, status.st_ino), "")


def _jails(root: str) -> dict[_Inode, str]:
    """The jailer makes BASE/PROGRAM/ID/root; a run directory can be such a base."""
    found = {}
    for directory in _below(root):
        for _, path in jails_in(directory):
            try:
                status = os.stat(path, follow_symlinks=False)
            except OSError:  # it went away meanwhile
                continue
            found[status.st_dev, status.st_ino] = directory
    return found


def jails_in(directory: str) -> Iterator[tuple[str, str]]:
    """The (program, root directory) of each jail in a run directory."""
    for base in _below(directory):
        program = os.path.basename(base)
        if rules.is_firecracker((program,), ""):
            for jail in _below(base):
                yield program, os.path.join(jail, "root")


def _below(directory: str) -> list[str]:
    try:
        names = os.listdir(directory)
    except OSError:  # none, not a directory, or not for this user to see
        return []
    return [os.path.join(directory, name) for name in sorted(names)]
