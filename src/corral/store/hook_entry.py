"""What a hook leaves in the spool when a session ends: written in a moment, understood later.

Kept apart from the rest of the spool, and from every module that reads JSON or SQLite: this is
all that the agent has to wait for.
"""

from __future__ import annotations

from corral.store import spool_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.hook import Heard


def leave(state_dir: str, heard: Heard) -> str:
    """Write down, durably, that a hook was called; returns the file.

    Raises StateDirectoryError or FileWriteError when it cannot be written.
    """
    return spool_files.put(state_dir, encode(heard))


def encode(heard: Heard) -> bytes:
    """The entry as JSON, in ASCII."""
    caller = heard.caller
    above = ",".join(f"[{pid:d},{ticks:d}]" for pid, ticks in caller.above)
    text = (
        f'{{"entry":"hook","agent":{_text(heard.agent)},"at":{heard.at:.6f},'
        f'"content":"{heard.content.hex()}","boot_id":{_text(caller.boot_id)},'
        f'"pid_namespace":{caller.pid_namespace:d},"agent_pid":{caller.agent_pid:d},'
        f'"above":[{above}]}}'
    )
    return text.encode("ascii")


def _text(text: str) -> str:
    """A JSON string; what has to be quoted with care is not expected, and asks for the module."""
    if text.isascii() and text.replace("-", "").isalnum():
        return f'"{text}"'
    import json

    return json.dumps(text)
