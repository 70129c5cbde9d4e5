"""The file of a lock, what its holder writes there, and the words for somebody who waits."""

from __future__ import annotations

from hashlib import sha256

from corral.decide.durations import format_age
from corral.model.lock import LockHolder, LockName, LockScope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SUFFIX = ".lock"
_DIGITS = 32
_VISIBLE = 80


def file_name(lock: LockName) -> str:
    """The name of a lock's file: digits of a hash, so no id can lead out of the directory."""
    text = f"{lock.scope.value}\0{lock.place}\0{lock.name}".encode("utf-8", "surrogatepass")
    return sha256(text).hexdigest()[:_DIGITS] + SUFFIX


def note_of(lock: LockName, holder: LockHolder) -> dict[str, Any]:
    """What a holder writes into the lock's file, beside its pid and the time."""
    return {
        "name": lock.name,
        "scope": lock.scope.value,
        "place": lock.place,
        "words": holder.command,
        "owner": holder.owner,
        "session": holder.session,
        "directory": holder.directory,
    }


def read_note(
    found: Mapping[str, Any], more: Mapping[str, Any]
) -> tuple[LockName | None, LockHolder]:
    """The lock and its holder, from the pid, command and time in `found` and the note in `more`.

    A note of another form, as a newer corral may write it, yields what can be understood of it.
    """
    holder = LockHolder(
        pid=_number(found.get("pid")) or 0,
        command=_text(more.get("words")) or ("" if more else _text(found.get("command")) or ""),
        since=_seconds(found.get("since")),
        owner=_text(more.get("owner")),
        session=_text(more.get("session")),
        directory=_text(more.get("directory")) or "",
    )
    name = _text(more.get("name"))
    scope = next((s for s in LockScope if s.value == more.get("scope")), None)
    if name is None or scope is None:
        return None, holder
    return LockName(name, scope, _text(more.get("place")) or ""), holder


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def scope_words(lock: LockName) -> str:
    """Where a lock counts, in words."""
    if lock.scope is LockScope.MACHINE:
        return "on this machine"
    return f"in all worktrees of {lock.place}"


def holder_words(holder: LockHolder, *, now: float, at: str) -> str:
    """Who holds a lock, since when and where, in words.

    `now`: unix seconds; `at`: `holder.since` as people here write the time.
    """
    if not holder.pid:
        return "somebody who cannot be seen from here"
    who = f"process {holder.pid}"
    if holder.session is not None:
        who = f"session {holder.session}, {who}"
    if holder.command:
        who += f" ({holder.command[:_VISIBLE]})"
    if holder.since is not None:
        who += f", since {at} ({format_age(now - holder.since)})"
    return f"{who}, in {holder.directory}" if holder.directory else who
