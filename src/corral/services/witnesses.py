"""Second names of files inside worktrees: while such a file has another, its worktree exists."""

from __future__ import annotations

import os

from corral.services.places import ID_FILE
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from corral.model.environment import Environment
    from corral.services.outputs import Placed


def bear(state_dir: str, environment: Environment, written: str = "") -> None:
    """Give a file inside the worktree a second name in the state directory.

    A plain directory has no file but those that corral wrote there, such as `written`.

    As long as that file has another name as well, the worktree exists somewhere, wherever it was
    moved to. Where the two are on different disks there is no witness, and the other signs count.
    """
    place = environment.place
    if place.kind == "git":
        inside = os.path.join(*((place.admin, ID_FILE) if place.is_main else (place.path, ".git")))
    elif written.startswith(f"{place.path.rstrip('/')}/"):
        inside = written
    else:
        return
    name = statedir.witness(state_dir, environment.id)
    try:
        known, now = _inode(name), _inode(inside)
        if known == now or now is None:
            return
        os.makedirs(os.path.dirname(name), mode=0o700, exist_ok=True)
        if known is not None:
            os.unlink(name)
        os.link(inside, name, follow_symlinks=False)
    except OSError:
        # Another disk, or a file system without hard links.
        return


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return (status.st_dev, status.st_ino)


def still(state_dir: str, environment: Environment) -> bool:
    """Whether the file that bears witness still has a name inside a worktree."""
    try:
        return os.lstat(statedir.witness(state_dir, environment.id)).st_nlink > 1
    except OSError:
        # There never was one.
        return False


def forget(state_dir: str, environment: str) -> None:
    """Drop the second name of an environment that was given up."""
    try:
        os.unlink(statedir.witness(state_dir, environment))
    except OSError:
        # There never was one, or what stands in its place is none: it holds up nothing.
        return


def bear_by_block(
    state_dir: str, environment: Environment, blocks: Collection[str], placed: Iterable[Placed]
) -> None:
    """Let the first of the files that corral's block was put into bear witness."""
    for each in placed:
        if each.path in blocks and each.result in {"written", "unchanged"}:
            bear(state_dir, environment, each.path)
            return
