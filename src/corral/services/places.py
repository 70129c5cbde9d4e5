"""Where an environment is: the worktree around a directory, read from git's own files.

No git process is started: the layout of `.git` files, administrative directories and `commondir`
is git's documented repository layout, and hooks must be quick.
"""

from __future__ import annotations

import os

from corral.errors import NotFoundError
from corral.model.environment import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ID_FILE = "corral-environment"
PROJECT_FILE = "corral.toml"
_LIMIT = 4096
_DIGITS = 12


def locate(directory: str) -> Place:
    """The place of the worktree that contains `directory`, or of the directory itself.

    Outside git the place is the nearest directory upwards that has a corral.toml, else the
    directory. Raises NotFoundError for a worktree whose administrative directory is missing.
    """
    start = os.path.realpath(directory)
    for candidate in _upwards(start):
        admin = _admin_of(candidate)
        if admin is not None:
            return _git_place(candidate, admin)
    for candidate in _upwards(start):
        if os.path.isfile(os.path.join(candidate, PROJECT_FILE)):
            return plain_place(candidate)
    return plain_place(start)


def _upwards(path: str) -> list[str]:
    found = [path]
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        found.append(path)
    return found


def _admin_of(directory: str) -> str | None:
    """The git administrative directory that `directory/.git` is or names, or None."""
    entry = os.path.join(directory, ".git")
    if os.path.isfile(os.path.join(entry, "HEAD")):
        return os.path.realpath(entry)
    if not os.path.isfile(entry):
        return None
    named = read_gitdir(entry)
    if named is None:
        return None
    if not os.path.isdir(named):
        raise NotFoundError(
            f"{directory} is a worktree, but its administrative directory {named} is not there",
            remedy="run git worktree repair in the main checkout; if its entry was pruned there, "
            "make the worktree anew (git worktree add) and take your changes over",
            resource=directory,
        )
    return os.path.realpath(named)


def read_gitdir(entry: str) -> str | None:
    """The absolute path that a `.git` file names, or None when it is no such file."""
    text = read_small(entry)
    if text is None or not text.startswith("gitdir:"):
        return None
    named = text.removeprefix("gitdir:").strip()
    return os.path.join(os.path.dirname(entry), named) if named else None


def read_small(path: str) -> str | None:
    """The text of a small regular file, or None when it is none or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        # Absent, forbidden or odd all mean the same here: nothing usable is written there.
        return None
    try:
        return os.read(descriptor, _LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        # A directory or a failing disk.
        return None
    finally:
        os.close(descriptor)


def common_directory(directory: str) -> str:
    """The git directory that all worktrees of the clone around `directory` share; "" outside git.

    Raises NotFoundError for a worktree whose administrative directory is missing.
    """
    for candidate in _upwards(os.path.realpath(directory)):
        admin = _admin_of(candidate)
        if admin is not None:
            return _common_of(admin)
    return ""


def _common_of(admin: str) -> str:
    relative = read_small(os.path.join(admin, "commondir"))
    return os.path.realpath(os.path.join(admin, relative.strip())) if relative else admin


def _git_place(path: str, admin: str) -> Place:
    common = _common_of(admin)
    is_main = common == admin
    if is_main:
        main = path
    elif os.path.basename(common) == ".git":
        main = os.path.dirname(common)
    else:
        main = common
    if not os.access(admin, os.W_OK) or _copied_worktree(path, admin, is_main=is_main):
        return plain_place(path)
    status = os.stat(path)
    return Place(
        path=path,
        kind="git",
        admin=admin,
        common=common,
        main=main,
        repository=os.path.basename(main).removesuffix(".git") or "repository",
        worktree="" if is_main else os.path.basename(admin),
        is_main=is_main,
        device=status.st_dev,
        inode=status.st_ino,
    )


def _copied_worktree(path: str, admin: str, *, is_main: bool) -> bool:
    """Whether a linked worktree's directory was copied, so that two directories name one entry."""
    if is_main:
        return False
    text = read_small(os.path.join(admin, "gitdir"))
    if text is None:
        return False
    original = os.path.realpath(os.path.join(admin, text.strip()))
    if original == os.path.join(path, ".git") or not os.path.isfile(original):
        return False
    named = read_gitdir(original)
    return named is not None and os.path.realpath(named) == admin


def plain_place(path: str) -> Place:
    """The place of a plain directory, identified by its real path."""
    status = os.stat(path)
    return Place(
        path=path,
        kind="path",
        admin="",
        common="",
        main=path,
        repository=os.path.basename(path) or "root",
        worktree="",
        is_main=True,
        device=status.st_dev,
        inode=status.st_ino,
    )


def no_project(place: Place, environ: Mapping[str, str]) -> str:
    """What a plain directory is that holds more than a project: a few words, "" for any other.

    A `corral.toml` in it says that it is meant.
    """
    if place.kind != "path" or os.path.isfile(os.path.join(place.path, PROJECT_FILE)):
        return ""
    if place.path == "/":
        return "the root directory"
    home = environ.get("HOME", "")
    return "your home directory" if home and place.path == os.path.realpath(home) else ""


def borne_id(place: Place) -> str | None:
    """The environment id that a git place bears in its administrative directory, or None."""
    if place.kind != "git":
        return None
    return id_in(place.admin)


def id_in(admin: str) -> str | None:
    """The environment id in an administrative directory, or None where there is no sound one."""
    path = os.path.join(admin, ID_FILE)
    if os.path.islink(path):
        return None
    text = (read_small(path) or "").strip()
    return text if is_environment_id(text) else None


def is_environment_id(text: str) -> bool:
    """Whether the text has the form of an environment id that corral mints."""
    digits = text.removeprefix("env-")
    sound = len(digits) == _DIGITS and digits.isalnum() and digits.isascii()
    return text.startswith("env-") and sound
