"""What `corral install` made for an agent, written beside the agent's settings for `uninstall`.

Settings are JSON, which has no comments, so what has to be remembered stands in a file of its own.
"""

from __future__ import annotations

import json

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMA = "corral-installed/1"
_NOTE = "written by corral install, read and removed by corral uninstall"
# Directories that may be made, relative to the agent's own, outermost first.
DIRECTORIES = (".", "skills", "skills/corral")


class Receipt(NamedTuple):
    """What was made.

    `skill`: the SHA-256 of the skill's text as it was written, "" if it was not. `settings`:
    whether the settings file was made. `directories`: those of DIRECTORIES that were made. `empty`:
    containers in the settings that had nothing in them before, with the blanks in them.
    """

    skill: str = ""
    settings: bool = False
    directories: tuple[str, ...] = ()
    empty: Mapping[str, str] = {}


def encode(receipt: Receipt) -> bytes:
    """The receipt as the text of its file."""
    document = {"schema": _SCHEMA, "note": _NOTE, **receipt._asdict()}
    return (json.dumps(document, indent=2) + "\n").encode()


def decode(content: bytes) -> Receipt | None:
    """The receipt that a file holds, or None where it is not one in every field."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        # Torn, or somebody else's.
        return None
    if not isinstance(found, dict) or found.get("schema") != _SCHEMA:
        return None
    skill, settings, made, empty = (
        found.get(key) for key in ("skill", "settings", "directories", "empty")
    )
    if not (isinstance(skill, str) and isinstance(settings, bool) and isinstance(made, list)):
        return None
    if not isinstance(empty, dict) or any(
        not isinstance(blanks, str) or blanks.strip(" \t\r\n") for blanks in empty.values()
    ):
        return None
    return Receipt(skill, settings, tuple(d for d in DIRECTORIES if d in made), empty)
