"""`corral trust`: let the commands that this project's files bring run, exactly as they are now."""

from __future__ import annotations

from corral.cli.asking import can_ask, confirmed
from corral.cli.output import Answer, printable, say
from corral.cli.surroundings import context_of
from corral.errors import UntrustedError
from corral.services import trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Any

    from corral.services.trust import Brought


_DIGITS = 12  # of the digest, for a person who compares


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("--check", action="store_true", help="only say whether it is trusted")


def run(arguments: Namespace) -> Answer:
    """Trust what is there, or only say whether it is trusted."""
    context = context_of(arguments)
    what = trust.brought(context)
    if what is None:
        return Answer(_data(None, trusted=True), lambda: "nothing here needs trust\n")
    trusted = trust.is_trusted(context, what)
    if arguments.check and not trusted:
        raise UntrustedError(
            f"the commands of {' and '.join(what.files)} in {what.root} are not trusted: "
            f"{'; '.join(what.commands)}",
            remedy="read them, then run: corral trust",
            resource=what.subject,
        )
    if not trusted:
        trust.trust(context, what)
    return Answer(_data(what, trusted=True), lambda: f"{_shown(what)}\ntrusted\n")


def _data(what: Brought | None, *, trusted: bool) -> dict[str, Any]:
    return {
        "trusted": trusted,
        "files": list(what.files) if what else [],
        "commands": list(what.commands) if what else [],
        "digest": what.digest if what else None,
        "subject": what.subject if what else None,
    }


def _shown(what: Brought) -> str:
    """The commands, for what trust is kept, and what ends it."""
    files = " and ".join(what.files)
    one = len(what.files) == 1
    terms = (
        f"trust is for this repository, all its worktrees, and {files} exactly as now "
        f"(sha256 {what.digest[:_DIGITS]}): any change {'of it' if one else 'of them'}, also in "
        "[vars], asks again"
    )
    lines = [
        f"{files} in {what.root} {'brings' if one else 'bring'} commands, which corral up runs:",
        *(f"  {command}" for command in what.commands),
        terms,
    ]
    return printable("\n".join(lines))


def asker(*, as_json: bool) -> Callable[[Brought], bool] | None:
    """How a person can be asked, or None where nobody is there to answer."""
    if as_json or not can_ask():
        return None
    return _ask


def _ask(what: Brought) -> bool:
    say(_shown(what))
    return confirmed("run them now, and whenever these files are exactly like this?")
