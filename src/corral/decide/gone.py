"""Whether an environment's worktree is gone: four proofs together, and no sign of a move."""

from __future__ import annotations

from corral.model.environment import Existence
from corral.model.tuples import NamedTuple

MAYBE_MOVED = "its administrative entry is there, so it may have been moved"


class Traces(NamedTuple):
    """What a look at the disk found. None stands for "could not be looked at".

    `admin_present`: the git administrative entry (always False outside git).
    `directory_present`: the recorded directory. `parent_mounted`: the file system that held its
    parent is mounted. `seen_elsewhere`: where the same directory, by inode, was seen ("" if not).
    """

    admin_present: bool | None
    directory_present: bool | None
    parent_mounted: bool | None
    seen_elsewhere: str = ""


def judge_environment(traces: Traces, *, live_anchored: bool) -> tuple[Existence, str]:
    """What is proven, with the reason."""
    if traces.directory_present:
        return Existence.PRESENT, "its directory is there"
    if traces.admin_present:
        return Existence.PRESENT, MAYBE_MOVED
    if traces.directory_present is None or traces.admin_present is None:
        return Existence.UNKNOWN, "its directory cannot be looked at"
    if not traces.parent_mounted:
        return Existence.UNKNOWN, "the file system that held it is not mounted"
    if traces.seen_elsewhere:
        return Existence.PRESENT, f"its directory was moved to {traces.seen_elsewhere}"
    if live_anchored:
        return Existence.PRESENT, "a live owner is in it"
    return Existence.GONE, "its worktree is gone"
