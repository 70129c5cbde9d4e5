"""The marked block in `.git/info/exclude`: what corral writes never shows up as untracked.

The file is one for all worktrees of a repository, so its block lists what any of them needs.
"""

from __future__ import annotations

import os

from corral.config.files import LOCAL_FILE
from corral.errors import InvalidValueError, RefusedError
from corral.kernel import paths
from corral.kernel.flock import FileLock
from corral.kernel.leavings import PATTERN
from corral.services.unplacing import DIRECTORY, EXCLUDE
from corral.store import environments, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from sqlite3 import Connection

    from corral.model.environment import Environment
    from corral.services.context import Context

_BEGIN = b"# >>> corral: files that it generates >>>"
_END = b"# <<< corral <<<"
_SPECIAL = frozenset("\\*?[]!# ")
_SECONDS = 10.0


def exclude_file(common: str) -> str:
    """The exclude file of a repository's common directory."""
    return os.path.join(common, "info", "exclude")


def pattern(relative: str) -> str:
    """The gitignore pattern that matches exactly this path below the top of a worktree."""
    return "/" + "".join(f"\\{c}" if c in _SPECIAL else c for c in relative)


def update(path: str, lock_path: str, patterns: Callable[[], Iterable[str]]) -> bool:
    """Make the block hold exactly these patterns (none: no block); True if the file changed.

    `patterns` is asked while the file is locked, so that the last one to write knows them all.

    Raises RefusedError for a file that is a symlink or no text, or whose marks do not pair up.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lock = FileLock(lock_path)
    if not lock.acquire(_SECONDS, note="exclude"):
        raise RefusedError(f"{path} is being changed by another corral", remedy="try again")
    try:
        before = _read(path)
        after = with_block(before, sorted(set(patterns())))
        if after == before:
            return False
        mode = os.stat(path).st_mode & 0o777 if before else 0o644
        paths.atomic_write(path, after, mode=mode)
        return True
    except InvalidValueError as error:
        raise RefusedError(f"{path} is left alone: {error.message}", resource=path) from error
    finally:
        lock.release()


def refresh(context: Context, environment: Environment, *, leave_out: str | None) -> None:
    """Bring the exclude file of an environment's repository up to date with what is recorded.

    `leave_out`: the id of an environment that needs nothing any more. Raises what `update` raises.
    """
    common = environment.place.common

    def wanted() -> set[str]:
        with context.registry.read() as conn:
            return _patterns(conn, common, leave_out)

    lock = os.path.join(statedir.ensure(context.state_dir), "exclude.lock")
    update(exclude_file(common), lock, wanted)


def _patterns(conn: Connection, common: str, leave_out: str | None) -> set[str]:
    """What the worktrees of a repository need to have excluded."""
    known, _ = environments.all_(conn)
    found = set()
    for environment in known:
        if environment.place.common != common or environment.id == leave_out:
            continue
        top = environment.place.path.rstrip("/") + "/"
        for output in environments.outputs(conn, environment.id):
            unseen = output.mode in {EXCLUDE, DIRECTORY}  # git does not show empty directories
            if not unseen and output.path.startswith(top):
                found.add(pattern(output.path.removeprefix(top)))
    return found | {pattern(LOCAL_FILE), PATTERN} if found else found


def _read(path: str) -> bytes:
    try:
        return paths.read_regular(path)
    except FileNotFoundError:
        return b""


def with_block(content: bytes, patterns: list[str]) -> bytes:
    """The content with one block of these patterns at its end; every other line stays.

    Raises InvalidValueError where a mark stands alone, so that nobody can tell whose lines follow.
    """
    before, begin, rest = content.partition(_BEGIN)
    inside, end, after = rest.partition(_END)
    if bool(begin) != bool(end) or (not begin and _END in content):
        raise InvalidValueError("its marks of corral do not pair up", remedy="remove the marks")
    del inside
    kept = before + after.removeprefix(b"\r").removeprefix(b"\n")
    if not patterns:
        return kept
    if kept and not kept.endswith(b"\n"):
        kept += b"\n"
    lines = [_BEGIN, *(p.encode("utf-8", "surrogateescape") for p in patterns), _END]
    return kept + b"\n".join(lines) + b"\n"
