"""What an agent's hook means: which payloads are understood, and what an end ends."""

from __future__ import annotations

from corral.decide.sessions import session_fault
from corral.model.hook import Payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.model.hook import Caller
    from corral.model.owner import Epoch, Owner

START, END = "SessionStart", "SessionEnd"
# These reasons do not end the worker: its process goes on with another conversation.
GOES_ON = frozenset({"clear", "resume"})
_LONGEST_PATH = 4096
_LONGEST_WORD = 200


def payload_in(content: bytes) -> Payload | None:
    """The payload that these bytes are, or None where they are not what the agents document."""
    import json

    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        # No JSON, no text in UTF-8, or nested beyond sense.
        return None
    return payload_of(value)


def payload_of(value: object) -> Payload | None:
    """The payload, or None when anything in it is not what the agents document."""
    if not isinstance(value, dict):
        return None
    event, session, directory = (value.get(key) for key in ("hook_event_name", "session_id", "cwd"))
    if not (isinstance(event, str) and isinstance(session, str) and isinstance(directory, str)):
        return None
    if not event or session_fault(session) or not _is_path(directory):
        return None
    why = value.get("source" if event == START else "reason")
    return Payload(_cut(event), session, directory, _cut(why) if isinstance(why, str) else "")


def _cut(word: str) -> str:
    return word[:_LONGEST_WORD]


def _is_path(text: str) -> bool:
    if not text.startswith("/") or "\0" in text or len(text) > _LONGEST_PATH:
        return False
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Half a character: no file system can hold it.
        return False
    return True


def ended_epochs(payload: Payload | None, owner: Owner | None, caller: Caller) -> tuple[Epoch, ...]:
    """The epochs that a hook's call releases: those of the agent that called it, and no others.

    An epoch is the caller's when its anchor stands above the caller, or is the process that the
    agent's own variable names. Where none is, those without an anchor are meant: nobody could say
    where they live. The same session in another terminal has another anchor, and goes on.
    """
    if payload is None or owner is None or payload.event != END or payload.why in GOES_ON:
        return ()
    open_ = [epoch for epoch in owner.epochs if epoch.released_at is None]
    anchored = tuple(epoch for epoch in open_ if _is_callers(epoch, caller))
    return anchored or tuple(epoch for epoch in open_ if epoch.anchor is None)


def _is_callers(epoch: Epoch, caller: Caller) -> bool:
    anchor = epoch.anchor
    if anchor is None or (anchor.boot_id, anchor.pid_namespace) != (
        caller.boot_id,
        caller.pid_namespace,
    ):
        return False
    return (anchor.pid, anchor.start_ticks) in caller.above or anchor.pid == caller.agent_pid


def journal_line(
    payload: Payload | None,
    agent: str,
    at: float,
    *,
    owner: str | None = None,
    environment: str | None = None,
    detail: str = "",
) -> dict[str, Any]:
    """The columns of the line that a hook's call leaves in the journal; `at` in unix seconds."""
    told = payload or Payload("", "", "", "not understood, nothing was changed")
    return {
        "at": at,
        "action": "hook",
        "kind": "session",
        "resource": told.session,
        "name": told.event,
        "owner": owner,
        "environment": environment,
        "trigger": agent,
        "detail": detail or told.why,
    }
