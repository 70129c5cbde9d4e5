"""Remove one file that corral wrote, or its block from it, if it still is as it was written."""

from __future__ import annotations

import os
from hashlib import sha256

from corral.errors import CorralError
from corral.kernel import paths
from corral.render import block
from corral.services import placing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.environment import Environment, Output

BLOCK, FILE, LINK, COPY, EXCLUDE = "block", "file", "link", "copy", "exclude"
DIRECTORY = "directory"  # made for one of the others, and removed once it is empty
# What begins the digest of a block in a file that was copied from the main checkout.
SEED = "seed:"


def file_digest(path: str) -> str:
    """SHA-256 over a regular file's content."""
    return sha256(paths.read_regular(path)).hexdigest()


def removed(environment: Environment, output: Output) -> tuple[str, str]:
    """Remove one file, or what corral put into it: the result and, if left, the reason."""
    try:
        return _remove(environment, output)
    except (CorralError, OSError) as error:
        # It cannot be read or written: that file stays, the others go on.
        return "left", error_words(error)


def error_words(error: CorralError | OSError) -> str:
    """What went wrong, in words."""
    return error.message if isinstance(error, CorralError) else error.strerror or str(error)


def _remove(environment: Environment, output: Output) -> tuple[str, str]:
    path = output.path
    if not os.path.lexists(path):
        return "already_gone", ""
    if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
        return "left", "a directory on its way is a symlink"
    if output.mode == DIRECTORY:
        os.rmdir(path)  # an OSError where it is not empty
        return "removed", ""
    if output.mode == BLOCK:
        return _remove_block(environment, output)
    if output.mode == LINK:
        if not os.path.islink(path) or os.readlink(path) != output.digest:
            return "left", "it is not the link that corral made"
    elif output.mode == COPY:
        if placing.digest(path) != output.digest:
            return "left", "it was changed since corral copied it"
    elif os.path.islink(path) or file_digest(path) != output.digest:
        return "left", "it was changed since corral wrote it"
    placing.remove_tree(path)
    return "removed", ""


def _remove_block(environment: Environment, output: Output) -> tuple[str, str]:
    path = output.path
    if os.path.islink(path):
        return "left", "it is a symlink"
    content = paths.read_regular(path)
    if all(each.id != environment.id for each in block.find_blocks(content)):
        return "already_gone", ""
    after = block.remove_block(content)
    if after is not None and output.digest == f"{SEED}{sha256(after).hexdigest()}":
        after = None  # nothing but what was copied from the main checkout
    if after is None:
        os.unlink(path)
    else:
        paths.atomic_write(path, after, mode=os.stat(path).st_mode & 0o777)
    return "removed", ""
