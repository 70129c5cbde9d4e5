"""Who holds a lock file: from the kernel's own table, and from the note that a holder leaves.

A lock file begins with a line that names its own inode. Whoever finds another line there (a file
that was made anew, or copied) has to see first that no one still holds a deleted predecessor.
"""

from __future__ import annotations

import os
import sys

from corral.errors import CorralError
from corral.kernel import clock
from corral.kernel._rawfile import read_all
from corral.kernel.files import read_regular
from corral.kernel.identity import decode_identity, encode_identity, own_identity, presence
from corral.kernel.procfs import parse_argv
from corral.model.process import Presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_COMMAND_LENGTH = 200


def heading(status: os.stat_result) -> bytes:
    """The first line of a lock file."""
    return f"corral-lock {status.st_dev}:{status.st_ino}\n".encode()


def encode_note(command: str, since: float) -> bytes:
    """What a holder writes below the heading: a JSON object with its pid and identity."""
    import json

    identity = own_identity()
    note = {
        "pid": identity.pid,
        "command": command,
        "since": since,
        "identity": encode_identity(identity),
    }
    return json.dumps(note).encode() + b"\n"


def decode_note(content: bytes) -> dict[str, Any] | None:
    """The note below the heading, None where there is none that can be understood."""
    import json

    text = content.partition(b"\n")[2]
    try:
        note = json.loads(text) if text else None
    except ValueError:
        return None  # torn: the holder was killed while it wrote
    return note if isinstance(note, dict) else None


def holder(path: str) -> dict[str, Any] | None:
    """Who holds the lock file at `path`; None where nobody does or it cannot be told.

    "pid" and "command" are there always; "since" (unix seconds) and "identity" with a note.
    """
    try:
        status, content = os.stat(path, follow_symlinks=False), read_regular(path)
    except (OSError, CorralError):  # no file, or not ours to read: there is nothing to tell
        return None
    note, pids = decode_note(content), list(locked_by(status))
    if note is not None and (note.get("pid") in pids or (not pids and _lives(note))):
        return note
    pids = pids or list(holders_of_deleted(os.path.realpath(path)))
    return {"pid": pids[0], "command": _command_of(pids[0])} if pids else None


def locked_by(status: os.stat_result) -> Iterator[int]:
    """Pids of the processes that took a flock on this file (Linux; elsewhere none)."""
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    return (pid for pid, file in _flocks() if file == device)


def holders_of_deleted(path: str) -> Iterator[int]:
    """Pids of those that hold a flock on a deleted file which was at this real path (Linux)."""
    gone = path + " (deleted)"
    for pid in dict.fromkeys(pid for pid, _ in _flocks()):
        directory = f"/proc/{pid}/fd"
        try:
            for fd in os.listdir(directory):
                if os.readlink(f"{directory}/{fd}") == gone and _is_locked(pid, fd):
                    yield pid
                    break
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or is another user's with a lock file of its own


def _flocks() -> Iterator[tuple[int, str]]:
    """Pid and "major:minor:inode" of each flock that is held, from /proc/locks."""
    if sys.platform != "linux":
        return
    try:
        lines = read_all("/proc/locks").splitlines()
    except OSError:  # a hidden /proc: the notes remain
        return
    for line in lines:
        fields = line.split()  # a waiter has an arrow in the second place
        if len(fields) > 5 and fields[1] == b"FLOCK" and int(fields[4]) > 0:  # noqa: PLR2004
            yield int(fields[4]), fields[5].decode()


def _is_locked(pid: int, fd: str) -> bool:
    return b"\nlock:" in read_all(f"/proc/{pid}/fdinfo/{fd}")


def _lives(note: dict[str, Any]) -> bool:
    try:
        identity = decode_identity(note.get("identity"))  # type: ignore[arg-type]
        return presence(identity, boot_id=clock.boot_id())[0] is not Presence.GONE
    except CorralError:
        return False  # a note of no known form names nobody


def _command_of(pid: int) -> str:
    try:
        argv = parse_argv(read_all(f"/proc/{pid}/cmdline"))
    except OSError:  # it has ended since, or is not ours to read
        return ""
    words = " ".join(" ".join(argv).split())  # one line, whatever the arguments hold
    return words[:_COMMAND_LENGTH].encode("utf-8", "backslashreplace").decode()
