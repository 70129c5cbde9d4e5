"""Owners in words: by what a person knows of them, with corral's own id beside it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.model.owner import Owner


def called(owner: Owner, places: Mapping[str, str]) -> str:
    """`session ID (own-…)`, or for a worktree's implicit owner its directory.

    `places`: the directory of each environment's id.
    """
    if owner.sessions:
        return f"session {owner.sessions[-1]} ({owner.id})"
    place = places.get(owner.implicit_of or "")
    if place is not None:
        return f"whoever works in {place} by hand ({owner.id})"
    return f"owner {owner.id}"
