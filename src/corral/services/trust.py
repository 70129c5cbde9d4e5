"""Commands that a project's files bring run only once the user has trusted exactly that content.

Trust is kept for a repository, so that each new worktree with the same content is trusted as well,
and pinned to one hash over all of the project's configuration: what `[vars]` says reaches the
commands too.
"""

from __future__ import annotations

import time

from corral.errors import UntrustedError
from corral.model.tuples import NamedTuple
from corral.store import trust as table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.config import Settings
    from corral.services.context import Context

_NEEDS_TEMPLATE = frozenset({"schema", "database", "container"})


class Brought(NamedTuple):
    """What a project's files bring: the commands, the files, and the content's hash.

    `subject` is what the trust is kept for: the repository, or the directory outside git. `root`
    is the directory that the files were read in: each worktree has its own.
    """

    commands: tuple[str, ...]
    files: tuple[str, ...]
    digest: str
    subject: str
    root: str


def brought(context: Context) -> Brought | None:
    """What would have to be trusted here, or None when no file of the project brings a command."""
    from corral.services.places import locate

    source = context.settings.commands_from
    if source is None:
        return None
    place = locate(context.directory)
    settings = context.settings
    subject = place.common or place.path
    return Brought(commands_of(settings), source.files, source.digest, subject, settings.root)


def commands_of(settings: Settings) -> tuple[str, ...]:
    """Every command that is configured, in the order in which they would run."""
    migrate = (settings.database.migrate,) if settings.database.migrate else ()
    return (*migrate, *settings.after_up)


def needed(settings: Settings) -> bool:
    """Whether bringing an environment up would run a command at all."""
    template = settings.database.migrate and settings.database.isolation in _NEEDS_TEMPLATE
    return bool(settings.after_up or template)


def is_trusted(context: Context, what: Brought) -> bool:
    """Whether exactly this content is trusted for this repository."""
    with context.registry.read() as conn:
        return table.is_trusted(conn, _key(what), what.digest)


def trust(context: Context, what: Brought) -> None:
    """Trust exactly this content for this repository."""
    with context.registry.write() as conn:
        table.trust(conn, _key(what), what.digest, time.time())


def _key(what: Brought) -> str:
    """Branches differ: trusting one's content must not take the trust of another's away."""
    return f"{what.subject}#{what.digest}"


def require(context: Context, ask: Callable[[Brought], bool] | None) -> None:
    """Raise UntrustedError unless the commands may run; `ask` (in a terminal) may say so now."""
    what = brought(context)
    if what is None or not needed(context.settings) or is_trusted(context, what):
        return
    if ask is not None and ask(what):
        trust(context, what)
        return
    count = len(what.commands)
    commands = "1 command" if count == 1 else f"{count} commands"
    raise UntrustedError(
        f"{' and '.join(what.files)} in {what.root} would run {commands} that nobody has trusted: "
        f"{'; '.join(what.commands)}",
        remedy="read them, then run: corral trust",
        resource=context.settings.root,
    )
