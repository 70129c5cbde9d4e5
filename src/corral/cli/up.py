"""`corral up`: claim, provision and write files for the environment of this directory."""

from __future__ import annotations

from corral.cli.output import EXIT_REMAINS, Answer, Problem
from corral.cli.port_arguments import port_wish
from corral.cli.surroundings import context_of
from corral.cli.table import columns, heading
from corral.cli.trust import asker
from corral.decide.database_urls import without_password
from corral.errors import UsageError
from corral.services.up import Request, Up, up
from corral.wiring import run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.config import PortWish

MODES = ("none", "schema", "database", "file", "container")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("--db", choices=MODES, help="the database that the environment gets")
    parser.add_argument(
        "--port",
        metavar="NAME[=PREFERRED]",
        action="append",
        default=[],
        help="claim a port of this name, the preferred one if it is free; may be repeated",
    )
    parser.add_argument(
        "--address", action="store_true", help="claim a loopback address of its own (Linux)"
    )


def run(arguments: Namespace) -> Answer:
    """Bring the environment up and answer with its view."""
    request = Request(arguments.db, _ports(arguments.port), arguments.address)
    done = up(context_of(arguments), request, run_program, asker(as_json=arguments.json))
    failed = Problem("setup-failed", done.failure, remedy=done.remedy)
    problems = (failed,) if done.failure else ()
    return Answer(
        data(done),
        lambda: text(done),
        words=done.words,
        problems=problems,
        status=EXIT_REMAINS if problems else 0,
    )


def _ports(texts: list[str]) -> tuple[PortWish, ...]:
    wishes = tuple(port_wish(text) for text in texts)
    names = [wish.name for wish in wishes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--port {name} is given twice", remedy="give each port once")
    return wishes


def data(done: Up) -> dict[str, Any]:
    """The documented data of `up`."""
    return {
        "environment": done.environment,
        "owner": done.acting.owner,
        "session": done.acting.session,
        "claimed": [each.name for each in done.ports if each.new],
        "inferred": list(done.inferred),
        "database_created": done.made,
        "files": [each._asdict() for each in done.files],
        "ran": list(done.ran),
    }


def text(done: Up) -> str:
    """The same for a person."""
    view = done.environment
    lines = [("environment", view["id"]), ("path", view["path"])]
    lines += [(f"port {name}", str(number)) for name, number in view["ports"].items()]
    if view["address"]:
        lines.append(("address", view["address"]))
    if view["database"]:
        shown = view["database"]["url"] or view["database"]["name"]
        lines.append(("database", without_password(shown)))
    lines += [
        ("file", f"{each.path} ({each.result})") for each in done.files if each.result != "left"
    ]
    return f"{heading('environment up')}\n{columns(lines)}"
