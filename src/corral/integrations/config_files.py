"""Changes to files of the user's: looked at, shown, and then written exactly as shown.

A symbolic link stays one, and what it leads to is edited: settings often live in a repository of
dotfiles. What could not be written as it should be is refused before anything is changed.
"""

from __future__ import annotations

import os
import stat

from corral.errors import InvalidValueError, RefusedError
from corral.kernel import files
from corral.model.tuples import NamedTuple

_WRITABLE = 0o200


class Found(NamedTuple):
    """A file as it is: `target` is where it really lies, `content` None where there is none."""

    path: str
    target: str
    content: bytes | None
    mode: int


class Change(NamedTuple):
    """A file that is to get other content; `after` None removes it.

    `own`: its text is corral's, and says nothing of the user's.
    """

    file: Found
    after: bytes | None
    own: bool = False

    @property
    def word(self) -> str:
        """What happens to the file."""
        if self.after is None:
            return "remove"
        return "create" if self.file.content is None else "edit"


class Left(NamedTuple):
    """Something that stays as it is, with the reason."""

    path: str
    reason: str


class Plan(NamedTuple):
    """What is to be done. `emptied`: directories that go once nothing is in them."""

    changes: tuple[Change, ...]
    left: tuple[Left, ...] = ()
    words: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()


def find(path: str, *, mode: int) -> Found:
    """The file at a path; `mode` is what a new one gets.

    Raises InvalidValueError, naming the file and the remedy, for one that could not be replaced by
    an edited one: a link to nothing, another user's, read-only, no regular file.
    """
    target = os.path.realpath(path)
    if os.path.islink(path) and not os.path.exists(path):
        raise InvalidValueError(
            f"{path} is a symbolic link to {target}, which is not there",
            remedy="make that file, or remove the link",
            resource=path,
        )
    _check_directory(path, os.path.dirname(target))
    try:
        content = files.read_regular(target)
    except FileNotFoundError:
        return Found(path, target, None, mode)
    except InvalidValueError as error:
        raise InvalidValueError(
            error.message, remedy="move it away, or make it a file of your own", resource=path
        ) from error
    except OSError as error:
        raise InvalidValueError(
            f"{path} cannot be read: {error.strerror}",
            remedy="let this user read it",
            resource=path,
        ) from error
    known = stat.S_IMODE(os.stat(target).st_mode)
    if not known & _WRITABLE:
        # Root could replace it all the same; whoever made it read-only meant that.
        raise InvalidValueError(
            f"{path} is read-only", remedy=f"make it writable: chmod u+w {target}", resource=path
        )
    return Found(path, target, content, known)


def _check_directory(path: str, directory: str) -> None:
    """See that the directory is there, or can be made, and can be written to."""
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        raise InvalidValueError(
            f"{path} cannot be made: {directory} is no directory",
            remedy=f"move {directory} away, or name another directory",
            resource=path,
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InvalidValueError(
            f"{path} cannot be written: {directory} is not writable",
            remedy=f"let this user write to {directory}",
            resource=path,
        )


def needed(*wanted: Change) -> tuple[Change, ...]:
    """Those of the changes whose file is not already as wanted."""
    return tuple(change for change in wanted if change.after != change.file.content)


def difference(change: Change) -> str:
    """A change as a unified diff."""
    from difflib import unified_diff

    before, after = (_lines(content) for content in (change.file.content, change.after))
    names = (
        "/dev/null" if change.file.content is None else change.file.path,
        "/dev/null" if change.after is None else change.file.path,
    )
    shown = unified_diff(before, after, *names, n=1)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shown
    )


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def carry_out(plan: Plan) -> None:
    """Make the changes, in their order.

    Raises RefusedError, before anything is changed, where a file is not what was shown any more.
    """
    for change in plan.changes:
        if find(change.file.path, mode=change.file.mode) != change.file:
            raise RefusedError(
                f"{change.file.path} was changed in the meantime, so it is left alone",
                remedy="run this again",
                resource=change.file.path,
            )
    for change in plan.changes:
        _make(change)
    for directory in plan.emptied:
        try:
            os.rmdir(directory)
        except OSError:
            # Something else is in it, or it is gone: either way it is not corral's to remove.
            continue


def _make(change: Change) -> None:
    target = change.file.target
    try:
        if change.after is None:
            os.unlink(target)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
    except OSError as error:
        raise files.not_written(target, error) from error
    files.atomic_write(target, change.after, change.file.mode)
