"""Entries that could not pass the gate in time; the next writer takes them in.

One file per entry, written under another name and then renamed, so that an entry is there whole
or not at all. It is applied exactly once: the transaction that applies it notes its name, and
only after that transaction the file goes; who finds a file whose name is noted only removes it.
"""

from __future__ import annotations

import os
import time

from corral.errors import InvalidValueError, StateDirectoryError
from corral.kernel import files
from corral.model.record import BadRecord
from corral.store import spool_files, statedir
from corral.store.rows import change, fetch
from corral.store.spool_files import LIMIT, SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from sqlite3 import Connection
    from typing import Any

    from corral.model.owner import Owner
    from corral.model.record import Event
    from corral.store.spooled import Entry

_ASIDE = "bad"
_ABANDONED = 3600.0  # seconds after which a file that was never renamed is nobody's any more


def append(state_dir: str, entry: Mapping[str, Any]) -> str:
    """Write one entry durably; returns its file. `entry["entry"]` names its kind.

    "release": `owner`, `epoch` (None: every one), `at` (unix seconds), `why`. "event": `at`,
    `action` and any other column of a line of the journal. "begun": see `spooled.begun_entry`.
    "hook": see `hook_entry`, which writes it. Raises InvalidValueError for another
    entry, StateDirectoryError or FileWriteError when it cannot be written.
    """
    from corral.store import spooled

    content = spooled.encode(entry)
    return spool_files.put(state_dir, content)


def pending(state_dir: str) -> list[Entry]:
    """The entries that wait and can be understood, oldest first."""
    return [entry for _, entry in _read_all(state_dir)[0]]


def bad(state_dir: str) -> list[BadRecord]:
    """Whatever lies in the spool and is no entry: kept, shown, and in nobody's way."""
    directory = statedir.spool_dir(state_dir)
    try:
        strange = [name for name in _listing(directory) if _is_strange(name)]
        aside = _listing(os.path.join(directory, _ASIDE))
    except (OSError, InvalidValueError) as error:  # no directory, or not to be read
        return [BadRecord("spool", directory, str(error))]
    return [
        *_read_all(state_dir)[1],
        *(BadRecord("spool", name, "it is no file of corral's") for name in strange),
        *(BadRecord("spool", os.path.join(_ASIDE, name), "it is no entry") for name in aside),
    ]


def _is_strange(name: str) -> bool:
    return not (name.endswith(SUFFIX) or name.startswith(".") or name == _ASIDE)


def overlay(state_dir: str, known: tuple[Owner, ...]) -> tuple[Owner, ...]:
    """The owners as they will be once the entries that wait are taken in."""
    waiting = pending(state_dir)
    if waiting:
        from corral.store.spool_meaning import overlaid

        for entry in waiting:
            known = overlaid(known, entry)
    return known


def lines(state_dir: str) -> list[Event]:
    """The lines for the journal that wait, oldest first."""
    waiting = pending(state_dir)
    if not waiting:
        return []
    from corral.store.spool_meaning import lines_of

    return lines_of(waiting)


def ingest(state_dir: str, conn: Connection) -> tuple[str, ...]:
    """Apply the entries that wait, inside the caller's transaction; returns their files.

    The caller commits, then calls `discard` with the result.
    """
    directory = statedir.spool_dir(state_dir)
    try:
        names = _listing(directory)
    except (OSError, InvalidValueError):  # shown by `bad`; no reason to stop all writers
        return ()
    return _take_in(directory, names, conn) if names else ()


def _take_in(directory: str, names: list[str], conn: Connection) -> tuple[str, ...]:
    noted = {str(name) for (name,) in fetch(conn, "SELECT id FROM spooled")}
    for name in noted.difference(names):
        change(conn, "DELETE FROM spooled WHERE id = ?", name)
    taken = []
    for name in names:
        path = os.path.join(directory, name)
        if name in noted or _apply_file(path, conn):
            if name not in noted:
                change(conn, "INSERT INTO spooled (id, at) VALUES (?, ?)", name, time.time())
            taken.append(path)
        elif name.startswith(".") and _is_abandoned(path):
            taken.append(path)
    return tuple(taken)


def _apply_file(path: str, conn: Connection) -> bool:
    """Apply one entry; False for what is none, which is put aside where it cannot become one."""
    if not path.endswith(SUFFIX) or os.path.basename(path).startswith("."):
        return False
    from corral.store import spool_meaning, spooled

    try:
        entry = spooled.decode(files.read_regular(path, LIMIT))
    except (OSError, spooled.UnknownKindError):  # gone, not readable now, or a newer corral's
        return False
    except InvalidValueError:
        _put_aside(path)
        return False
    spool_meaning.apply(conn, entry)
    return True


def _put_aside(path: str) -> None:
    directory, name = os.path.split(path)
    try:
        aside = statedir.subdirectory(os.path.join(directory, _ASIDE))
        os.rename(path, os.path.join(aside, name))
    except (OSError, StateDirectoryError):
        return  # full or read-only: it is looked at again, and shown all the same


def _is_abandoned(path: str) -> bool:
    try:
        return time.time() - os.stat(path, follow_symlinks=False).st_mtime > _ABANDONED
    except OSError:  # renamed in the meantime
        return False


def discard(taken: Iterable[str]) -> None:
    """Remove the files of entries that a committed transaction applied."""
    for path in taken:
        try:
            os.unlink(path)
        except OSError:  # gone already, or read-only by now: its name is noted all the same
            continue


def _listing(directory: str) -> list[str]:
    try:
        fd = files.open_directory(directory)
    except FileNotFoundError:
        return []
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def _read_all(state_dir: str) -> tuple[list[tuple[str, Entry]], list[BadRecord]]:
    good: list[tuple[str, Entry]] = []
    faults: list[BadRecord] = []
    directory = statedir.spool_dir(state_dir)
    try:
        names = _listing(directory)
    except (OSError, InvalidValueError):  # shown by `bad`; a release that is not seen keeps
        return [], []
    if not names:
        return [], []
    from corral.store import spooled

    for name in names:
        if name.startswith(".") or not name.endswith(SUFFIX):
            continue
        try:
            content = files.read_regular(os.path.join(directory, name), LIMIT)
            good.append((name, spooled.decode(content)))
        except FileNotFoundError:
            continue  # a writer took it in since the listing
        except (OSError, InvalidValueError) as error:
            faults.append(BadRecord("spool", name, str(error)))
    return good, faults
