"""`corral env`: the environment's variables as text, printed or kept in a file."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.render.formats import FORMATS
from corral.services import exporting
from corral.services.environments import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument(
        "--format", choices=FORMATS, default="dotenv", help="how to write it (default: dotenv)"
    )
    parser.add_argument("--output", metavar="FILE", help="keep it in a file instead of printing it")
    parser.add_argument("--no-header", action="store_true", help="without the comment at the top")


def run(arguments: Namespace) -> Answer:
    """Print the variables, or write them to a file."""
    context = context_of(arguments)
    environment = require(context)
    variables, rendered = exporting.render(
        context, environment, arguments.format, header=not arguments.no_header
    )
    found = {"environment": environment.id, "format": arguments.format}
    if arguments.output is None:
        return Answer(
            {**found, "variables": dict(variables), "text": rendered, "file": None},
            lambda: rendered,
        )
    from corral.wiring import run_program

    placed = exporting.write(context, environment, arguments.format, arguments.output, run_program)
    return Answer(
        {**found, "variables": dict(variables), "text": rendered, "file": placed._asdict()},
        lambda: "",
        words=(f"{placed.path}: {placed.result}",),
    )
