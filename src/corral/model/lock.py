"""Locks: how far one reaches, what it is called, and who holds it."""

from __future__ import annotations

from enum import Enum

from corral.model.tuples import NamedTuple


class LockScope(Enum):
    """All worktrees of one clone, or everything of this user's on the machine."""

    REPO = "repo"
    MACHINE = "machine"


class LockName(NamedTuple):
    """What is locked. `name`: in its canonical form; `place`: the clone's common git directory.

    `place` is "" in the scope of the machine.
    """

    name: str
    scope: LockScope
    place: str


class LockHolder(NamedTuple):
    """Who holds a lock, as far as it can be told.

    `pid` is 0 where even that is unknown. `since`: unix seconds. `fence`: the number that was
    given out with the lock. `directory`: where it was taken.
    """

    pid: int
    command: str
    since: float | None = None
    owner: str | None = None
    session: str | None = None
    directory: str = ""
    fence: int | None = None


class LockState(NamedTuple):
    """A lock that is held. `lock` is None for a moment, until its holder has said what it locks."""

    path: str
    lock: LockName | None
    holder: LockHolder
