"""Files that corral writes for an environment: written once, recorded, and exactly those removed.

What is about to be written is recorded first, with the digest of its content, so that a crash in
between leaves nothing that nobody knows of. A file of the user's is never overwritten: a dotenv
file keeps every byte outside of corral's one block, anything else is left alone and said.
"""

from __future__ import annotations

import os
from hashlib import sha256

from corral.errors import CorralError, EnumerationError, InvalidValueError, RefusedError
from corral.kernel import paths
from corral.model.environment import Output
from corral.model.tuples import NamedTuple
from corral.render import block
from corral.services import exclude, placing
from corral.services import output_records as records
from corral.services.environments import register
from corral.services.places import borne_id, locate
from corral.services.sweeping import sweep
from corral.services.unplacing import (
    BLOCK,
    COPY,
    DIRECTORY,
    EXCLUDE,
    FILE,
    LINK,
    SEED,
    error_words,
    file_digest,
    removed,
)
from corral.store import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corral.model.environment import Environment
    from corral.services.context import Context
    from corral.services.repository import Repository

# The digest of a block that the user asked for by name: `up` does not take it back.
EXPORTED = "exported"


class Wanted(NamedTuple):
    """One file that should be there.

    `mode`: block (`content` are the lines of corral's block), file (`content` is all of it), link
    or copy (of `source`). `path` is absolute. `seed`: what a block's file holds besides, where
    there is no file yet and it is to be copied from the main checkout. `exported`: a block in a
    file that the user named (`corral env --output`). `replaceable`: what is there is corral's own,
    made for this environment or one that this is a copy of.
    """

    path: str
    mode: str
    content: bytes = b""
    source: str = ""
    seed: bytes | None = None
    exported: bool = False
    replaceable: bool = False

    @property
    def digest(self) -> str:
        """What pins the content: removal takes only what still has it.

        A block pins itself; for one in a copied file this pins what was copied.
        """
        if self.mode == LINK:
            return self.source
        if self.mode == COPY:
            return placing.digest(self.source)
        if self.exported and self.mode == BLOCK:
            return EXPORTED
        if self.mode == BLOCK:
            return "" if self.seed is None else f"{SEED}{sha256(self.seed).hexdigest()}"
        return sha256(self.content).hexdigest()


class Placed(NamedTuple):
    """What became of one file: `result` is written, unchanged, left or removed; why if left."""

    path: str
    result: str
    reason: str = ""


def rehearse(environment_id: str, wanted: Iterable[Wanted]) -> None:
    """Raise what writing would raise for good: a torn block, a value that the file cannot hold.

    Changes nothing. What is only left alone (a symlink, a tracked file) raises nothing.
    """
    for each in wanted:
        if each.mode == BLOCK and not _unusable(each.path):
            try:
                block.place_block(_existing(each), environment_id, each.content)
            except CorralError as error:
                raise _about(error, each.path) from error


def _about(error: CorralError, path: str) -> CorralError:
    kind = RefusedError if isinstance(error, RefusedError) else InvalidValueError
    return kind(f"{path}: {error.message}", remedy=error.remedy, resource=path)


def write_outputs(
    context: Context,
    environment: Environment,
    wanted: Sequence[Wanted],
    repository: Repository,
) -> tuple[Placed, ...]:
    """Bring the files to be as wanted, touching none that is so already; what became of each.

    A block in a file that is not wanted any more is taken out.
    """
    known = records.known_outputs(context, environment)
    sweep(context, environment, known.values())
    placed = _write(context, environment, wanted, known, repository)
    _forget_stale(context, environment, {w.path for w in wanted}, known)
    return (*placed, *_exclude(context, environment))


def write_one(
    context: Context, environment: Environment, wanted: Wanted, repository: Repository
) -> Placed:
    """Bring one more file to be as wanted, besides those that `up` keeps."""
    known = records.known_outputs(context, environment)
    (placed,) = _write(context, environment, [wanted], known, repository)
    _exclude(context, environment)
    return placed


def _write(
    context: Context,
    environment: Environment,
    wanted: Sequence[Wanted],
    known: dict[str, Output],
    repository: Repository,
) -> tuple[Placed, ...]:
    reasons = _reasons_to_leave(environment, wanted, known, repository)
    ready = [w for w in wanted if w.path not in reasons]
    new = [w for w in ready if w.mode != FILE or not os.path.lexists(w.path)]
    records.record_directories(context, environment, ready, known)
    records.record(context, environment, new, known)
    if new:
        _exclude(context, environment)  # first, so that git never sees half of one either
    placed = [
        Placed(w.path, "left", reasons[w.path]) if w.path in reasons else _place(environment, w)
        for w in wanted
    ]
    records.record(context, environment, ready, known)
    return tuple(placed)


def _reasons_to_leave(
    environment: Environment,
    wanted: Sequence[Wanted],
    known: dict[str, Output],
    repository: Repository,
) -> dict[str, str]:
    root = environment.place.path.rstrip("/") + "/"
    ours = [w.path for w in wanted if w.mode in {BLOCK, FILE} and w.path.startswith(root)]
    reasons = {w.path: why for w in wanted if (why := _why_foreign(w, known))}
    try:
        tracked = repository.tracked([path.removeprefix(root) for path in ours])
    except EnumerationError as error:
        # Nobody can tell whether it is tracked, so it may be: leave what is there alone.
        return dict.fromkeys(ours, error.message) | reasons
    return {root + relative: "git tracks it" for relative in tracked} | reasons


def _why_foreign(wanted: Wanted, known: dict[str, Output]) -> str:
    """Why what is in the place must not be touched, "" if it may be or nothing is there."""
    if wanted.mode == BLOCK:
        return _unusable(wanted.path)
    if not os.path.lexists(wanted.path):
        return ""
    recorded = known.get(wanted.path)
    if wanted.replaceable:
        return ""
    if recorded is None or recorded.mode != wanted.mode:
        return "it is there already, and not corral's"
    if wanted.mode == FILE and file_digest(wanted.path) != recorded.digest:
        return "it was changed since corral wrote it"
    return ""


def _unusable(path: str) -> str:
    """Why no block can be kept in the file, "" if it can."""
    if os.path.islink(path):
        return "it is a symlink"
    if not os.path.lexists(path):
        return ""
    if not os.path.isfile(path):
        return "it is no regular file"
    return "" if os.lstat(path).st_uid == os.geteuid() else "it belongs to another user"


def _place(environment: Environment, wanted: Wanted) -> Placed:
    os.makedirs(os.path.dirname(wanted.path), exist_ok=True)
    if wanted.mode == BLOCK:
        return _place_block(environment, wanted)
    there = os.path.lexists(wanted.path)
    if wanted.mode == FILE:
        if there and file_digest(wanted.path) == wanted.digest:
            return Placed(wanted.path, "unchanged")
        paths.atomic_write(wanted.path, wanted.content)
        return Placed(wanted.path, "written")
    if there:
        return Placed(wanted.path, "unchanged")
    try:
        (placing.link if wanted.mode == LINK else placing.copy)(wanted.source, wanted.path)
    except FileExistsError:
        # Somebody else's file came first.
        return Placed(wanted.path, "left", "it is there already, and not corral's")
    return Placed(wanted.path, "written")


def _place_block(environment: Environment, wanted: Wanted) -> Placed:
    before = _existing(wanted)
    after = block.place_block(before, environment.id, wanted.content)
    there = os.path.lexists(wanted.path)
    if there and after == before:
        return Placed(wanted.path, "unchanged")
    # the permissions of a file of the user's are the user's choice
    mode = os.stat(wanted.path).st_mode & 0o777 if there else 0o600
    paths.atomic_write(wanted.path, after, mode=mode)
    return Placed(wanted.path, "written")


def _existing(wanted: Wanted) -> bytes | None:
    """What the file holds now, or will hold besides the block when it is made."""
    try:
        return paths.read_regular(wanted.path)
    except FileNotFoundError:
        return wanted.seed


def _forget_stale(
    context: Context, environment: Environment, wanted: set[str], known: dict[str, Output]
) -> None:
    """Take blocks out of files that are not wanted any more, and forget files that went away."""
    stale = []
    for path, output in known.items():
        if path in wanted or output.mode == EXCLUDE:
            continue
        lost = not os.path.lexists(path)
        if lost or (output.mode == BLOCK and output.digest != EXPORTED):
            stale.append(output)
    gone = [output.path for output in stale if removed(environment, output)[0] != "left"]
    if gone:
        with context.registry.write() as conn:
            for path in gone:
                environments.forget_output(conn, environment.id, path)


def _exclude(context: Context, environment: Environment) -> tuple[Placed, ...]:
    """Keep git from showing what was written, in every worktree; what could not be written."""
    place = environment.place
    if place.kind != "git":
        return ()
    path = exclude.exclude_file(place.common)
    if path not in records.known_outputs(context, environment):
        with context.registry.write() as conn:
            environments.record_output(conn, Output(environment.id, path, EXCLUDE, ""))
    try:
        exclude.refresh(context, environment, leave_out=None)
    except (CorralError, OSError) as error:
        # A symlink, marks that do not pair up, a repository that may not be written to.
        return (Placed(path, "left", error_words(error)),)
    return ()


def remove_outputs(context: Context, environment: Environment) -> list[tuple[str, str, str]]:
    """Remove what was written for the environment: (path, result, reason) of each file.

    `result`: removed, already_gone, or left with the reason. What the user changed since is left;
    the user's own lines around a block stay. The rows of what is gone are dropped. A directory
    that was made for one of the files goes with them, if nothing else is in it.
    """
    environment = _where_it_is(context, environment)
    known = records.known_outputs(context, environment)
    sweep(context, environment, known.values())
    found = [
        (path, *removed(environment, output))
        for path, output in known.items()
        if output.mode not in {EXCLUDE, DIRECTORY}
    ]
    gone = [path for path, result, _ in found if result != "left"]
    made = [output for output in known.values() if output.mode == DIRECTORY]
    deepest_first = sorted(made, key=lambda each: each.path, reverse=True)
    gone += [o.path for o in deepest_first if removed(environment, o)[0] != "left"]
    with context.registry.write() as conn:
        for path in gone:
            environments.forget_output(conn, environment.id, path)
    path = exclude.exclude_file(environment.place.common)
    if environment.place.kind == "git" and os.path.isfile(path):
        try:
            exclude.refresh(context, environment, leave_out=environment.id)
        except (CorralError, OSError) as error:
            # The user changed the marks, or took the permission away: the lines stay.
            found.append((path, "left", error_words(error)))
    return found


def _where_it_is(context: Context, environment: Environment) -> Environment:
    """The environment with the paths of its directory now, should it have been moved."""
    place = locate(context.directory)
    if place.path != environment.place.path and borne_id(place) == environment.id:
        return register(context)
    return environment
