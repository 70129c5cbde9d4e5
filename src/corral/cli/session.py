"""`corral session start|end|list`."""

from __future__ import annotations

import time

from corral.cli.output import Answer
from corral.cli.reap import report_answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.decide.over import forgotten
from corral.errors import UsageError
from corral.services import environments, sessions
from corral.services.ending import Subject, reap_job
from corral.services.owners import boot_clock, named_session
from corral.services.teardown import carry_out
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from corral.model.owner import OwnerState


_HEADS = ("SESSION", "LIFE", "WORKTREE", "OWNER", "REASON")

ACTIONS = ("start", "end", "list")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument(
        "--anchor", metavar="PID", type=int, help="start: the process whose death ends it"
    )
    parser.add_argument("--force", action="store_true", help="end: even if it lives elsewhere")
    parser.add_argument(
        "--all", action="store_true", help="list: also those that ended more than a day ago"
    )


def run(arguments: Namespace) -> Answer:
    """Start, end or list."""
    for given, option, action in (
        (arguments.anchor is not None, "--anchor", "start"),
        (arguments.force, "--force", "end"),
        (arguments.all, "--all", "list"),
    ):
        if given and arguments.action != action:
            raise UsageError(
                f"{option} has no meaning for {arguments.action}",
                remedy=f"corral session {action} {option}",
            )
    return {"start": _start, "end": _end, "list": _list}[arguments.action](arguments)


def _start(arguments: Namespace) -> Answer:
    started = sessions.start(context_of(arguments), anchor=arguments.anchor)

    def text() -> str:
        from corral.render.shell import quote

        return f"export CORRAL_SESSION={quote(started.session)}\n"

    return Answer(started._asdict(), text)


def _end(arguments: Namespace) -> Answer:
    """Release the session, then take down what it owns, if every epoch of it is over."""
    context = context_of(arguments, anywhere=True)
    owner = sessions.end(context, force=arguments.force)
    whose = Subject(owner, None, known=True)
    report = carry_out(
        context, backends(context), reap_job(whose, trigger="session end", release=True)
    )
    answer = report_answer(report)
    text = answer.text if any(report[:4]) else None
    named = named_session(context)
    words = f"session {named} has ended" if named else f"the session of {owner} has ended"
    return answer._replace(text=text, words=(words,))


def _list(arguments: Namespace) -> Answer:
    context = context_of(arguments, anywhere=True)
    every = sessions.states(context)
    places, clock, now = environments.places(context), boot_clock(), time.time()
    found = [_row(s, places) | {"forgotten": forgotten(s, clock, now)} for s in every]
    shown = [row for row in found if arguments.all or not row["forgotten"]]

    def text() -> str:
        cells = [
            (
                ",".join(r["sessions"]) or "(by hand)",
                r["life"],
                r["path"] or "-",
                r["owner"],
                r["reason"],
            )
            for r in shown
        ]
        return columns(cells, _HEADS) or "no sessions\n"

    hidden = len(found) - len(shown)
    words = (f"{hidden} that ended long ago: corral session list --all",) if hidden else ()
    return Answer({"sessions": found}, text, words=words)


def _row(state: OwnerState, places: Mapping[str, str]) -> dict[str, Any]:
    owner = state.owner
    lives_in = owner.implicit_of or (owner.epochs[-1].environment if owner.epochs else None)
    return {
        "owner": owner.id,
        "sessions": list(owner.sessions),
        "implicit_of": owner.implicit_of,
        "environment": lives_in,
        "path": places.get(lives_in or ""),
        "parent": owner.parent,
        "life": state.life.value,
        "reason": state.reason,
        "epochs": [
            {
                "id": epoch.id,
                "environment": epoch.environment,
                "agent": epoch.agent,
                "opened_at": epoch.opened_at,
                "anchor": epoch.anchor.pid if epoch.anchor is not None else None,
                "released_at": epoch.released_at,
            }
            for epoch in owner.epochs
        ],
    }
