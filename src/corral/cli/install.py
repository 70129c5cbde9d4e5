"""`corral install` and `corral uninstall`: hooks and the skill for agents, and the hook of git.

What would change is shown as a diff; in a terminal it asks, without one only `--yes` acts.
"""

from __future__ import annotations

import os
import sys

from corral.cli.asking import can_ask, confirmed
from corral.cli.output import Answer, printable, say
from corral.errors import NotFoundError, UsageError
from corral.integrations import agents, git_hook
from corral.integrations.config_files import carry_out, difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.integrations.config_files import Plan

_DONE = {"create": "wrote", "edit": "wrote", "remove": "removed"}


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    parser.add_argument("target", choices=(*agents.AGENTS, "git"), help="an agent, or git")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="act without asking")
    parser.set_defaults(install=command == "install")


def run(arguments: Namespace) -> Answer:
    """Show what would change, ask, and make the changes that were shown."""
    plan = _plan(arguments)
    if arguments.dry_run or not plan.changes:
        return _answer(arguments, plan, applied=not plan.changes, shown=False)
    asked = not arguments.yes
    if asked and not _approved(plan, arguments):
        return _answer(arguments, plan, applied=False, shown=False)
    carry_out(plan)
    return _answer(arguments, plan, applied=True, shown=asked)


def _plan(arguments: Namespace) -> Plan:
    home = os.path.expanduser("~")
    if arguments.target != "git":
        if not arguments.install:
            return agents.uninstall(arguments.target, os.environ, home)
        program = installed_program("corral-hook", sys.argv[0])
        return agents.install(arguments.target, program, os.environ, home)
    from corral.wiring import run_program

    directory = os.path.abspath(arguments.env or ".")
    if not os.path.isdir(directory):
        raise UsageError(f"{arguments.env}: not a directory", remedy="name a worktree")
    if not arguments.install:
        return git_hook.uninstall(directory, os.environ, run_program)
    program = installed_program("corral", sys.argv[0])
    return git_hook.install(directory, program, os.environ, run_program)


def installed_program(name: str, called: str) -> str:
    """The absolute path of one of corral's programs: beside the one called, else the interpreter.

    `called` is often a link in a directory on PATH, which stays when the environment behind it is
    made anew, so it is not resolved. Raises NotFoundError where corral is not installed.
    """
    beside = [os.path.dirname(sys.executable)]
    if os.path.basename(called) == "corral":
        beside.insert(0, os.path.dirname(os.path.abspath(called)))
    for directory in beside:
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK):
            return path
    raise NotFoundError(
        f"{name} is not installed beside {called} or {sys.executable}",
        remedy="install corral (pip install), then run this again",
    )


def _approved(plan: Plan, arguments: Namespace) -> bool:
    """Whether a person in a terminal says yes; without a terminal nobody does."""
    if arguments.json or not can_ask():
        say("shown only; --yes makes these changes")
        return False
    say(_differences(plan).rstrip("\n"))
    return confirmed("make these changes?" if arguments.install else "take this out?")


def _differences(plan: Plan) -> str:
    """What would change: line by line, but for whole files whose text is corral's own."""
    return "".join(
        f"{change.word} {printable(change.file.path)}\n"
        if change.own and change.word != "edit"
        else printable(difference(change))
        for change in plan.changes
    )


def _answer(arguments: Namespace, plan: Plan, *, applied: bool, shown: bool) -> Answer:
    """`shown`: the diff was shown already, when a person was asked."""
    data: dict[str, Any] = {
        "target": arguments.target,
        "applied": applied,
        "changes": [
            {"path": change.file.path, "change": change.word, "diff": difference(change)}
            for change in plan.changes
        ],
        "left": [left._asdict() for left in plan.left],
    }
    left = tuple(f"{each.path} is left: {each.reason}" for each in plan.left)
    nothing = "already there\n" if arguments.install else "nothing of corral's to take out\n"

    def text() -> str:
        if not plan.changes:
            return nothing
        lines = [
            f"{_DONE[change.word]} {printable(change.file.path)}\n"
            for change in plan.changes
            if applied
        ]
        return ("" if shown else _differences(plan)) + "".join(lines)

    return Answer(data, text, words=(*plan.words, *left))
