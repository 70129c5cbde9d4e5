"""Which files an environment should have: its dotenv file, compose's `.env`, links and copies."""

from __future__ import annotations

import os

from corral.errors import CorralError, EnumerationError, InvalidValueError, RefusedError
from corral.kernel import paths
from corral.render import block, dotenv
from corral.render.variables import checked
from corral.services import composing, placing
from corral.services.outputs import Wanted
from corral.services.repository import Repository
from corral.services.unplacing import BLOCK, COPY, FILE, LINK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.environment import Environment
    from corral.services.composing import Project
    from corral.services.context import Context
    from corral.services.holdings import Holdings
    from corral.services.repository import RunProgram

INCLUDE_FILE = ".worktreeinclude"
Pairs = tuple[tuple[str, str], ...]


def wanted_files(
    context: Context,
    environment: Environment,
    held: Holdings,
    variables: Pairs,
    project: Project | None,
    run_program: RunProgram | None,
) -> tuple[tuple[Wanted, ...], list[str]]:
    """The files, and words on what cannot be had; changes nothing.

    Without `run_program` (a rehearsal) git is not asked, so `.worktreeinclude` is passed over.
    Raises InvalidValueError for a value that a dotenv file cannot hold, RefusedError for a path
    that leads out of the worktree.
    """
    words: list[str] = []
    placed = _placed(context, environment, run_program, words)
    lines = _block_lines(context, environment, held, variables, project)
    found: list[Wanted] = []
    for relative, pairs in lines.items():
        path = placing.refuse_escape(environment.place.path, relative)
        other = placed.pop(path, None)
        if other is not None and other.mode == LINK:
            placed[path] = other
            words.append(
                f"{relative} is a link to the main checkout, so corral's lines are not in it"
            )
            continue
        seed = _seed(other.source) if other is not None else None
        content = _dotenv(relative, pairs)
        found.append(Wanted(path, BLOCK, content, seed=seed))
    if project is not None and held.name("compose") is not None:
        found.append(_override(context, environment, held, project, words))
    return (*placed.values(), *found), words


def _dotenv(relative: str, pairs: Pairs) -> bytes:
    """The lines of a dotenv file; the error for what it cannot hold says how to do without."""
    try:
        return dotenv.lines(checked(pairs)).encode()
    except InvalidValueError as error:
        name = error.resource or "the variable"
        raise InvalidValueError(
            f"{relative} cannot hold {error.message}",
            remedy=f'change {name} in [vars]; or set [outputs] dotenv = "" and load it with: '
            'eval "$(corral env --format shell)" (corral run hands it over in any case)',
            resource=error.resource,
        ) from error


def _override(
    context: Context,
    environment: Environment,
    held: Holdings,
    project: Project,
    words: list[str],
) -> Wanted:
    content, said = composing.override_text(context, environment, held, project)
    words += said
    words += composing.words(context, project, environment.place.path)
    path = composing.override_path(context, environment, project)
    return Wanted(path, FILE, content, replaceable=composing.is_corrals(path))


def _block_lines(
    context: Context,
    environment: Environment,
    held: Holdings,
    variables: Pairs,
    project: Project | None,
) -> dict[str, Pairs]:
    """What stands in which dotenv file, by relative path."""
    lines: dict[str, Pairs] = {}
    if context.settings.dotenv:
        lines[os.path.normpath(context.settings.dotenv)] = variables
    name = held.name("compose")
    if project is not None and name is not None:
        pairs = composing.project_variables(context, environment, project, name)
        own = lines.get(composing.PROJECT_FILE, ())
        lines[composing.PROJECT_FILE] = (*own, *pairs)
    return lines


def _seed(source: str) -> bytes:
    """The main checkout's file without corral's block in it."""
    content = paths.read_regular(source)
    try:
        return block.remove_block(content) or b""
    except CorralError:
        # Its marks do not pair up: copied as it is, which is then refused with the same words.
        return content


def _placed(
    context: Context,
    environment: Environment,
    run_program: RunProgram | None,
    words: list[str],
) -> dict[str, Wanted]:
    """Links and copies from the main checkout, by path; none in the main checkout itself."""
    place, settings = environment.place, context.settings
    if place.is_main or place.kind != "git":
        return {}
    found: dict[str, Wanted] = {}
    included = _included(context, place.main, run_program, words)
    for mode, relatives in ((LINK, settings.link), (COPY, settings.copy), (COPY, included)):
        for relative in relatives:
            source = placing.refuse_escape(place.main, relative)
            target = placing.refuse_escape(place.path, relative)
            if not os.path.lexists(source):
                words.append(f"{relative} is not in the main checkout {place.main}")
                continue
            if mode == COPY and not placing.is_inside(place.main, source):
                raise RefusedError(
                    f"{relative} is a symlink that leads out of {place.main}",
                    remedy="list it under [files] link, or name what it points to",
                    resource=source,
                )
            found.setdefault(target, Wanted(target, mode, source=source))
    return found


def _included(
    context: Context, main: str, run_program: RunProgram | None, words: list[str]
) -> tuple[str, ...]:
    """What `.worktreeinclude` of the main checkout names: ignored files that its patterns match."""
    path = os.path.join(main, INCLUDE_FILE)
    if run_program is None or not os.path.isfile(path):
        return ()
    repository = Repository(main, context.environ, run_program)
    try:
        return repository.ignored_and_matched(path)
    except EnumerationError as error:
        words.append(f"{INCLUDE_FILE} is not honoured: {error.message}")
        return ()
