"""`corral stop NAME`: take down exactly that service, and say so once it is gone."""

from __future__ import annotations

from corral.cli.reap import report_answer
from corral.cli.surroundings import context_of
from corral.services.stopping import stop
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corral.cli.output import Answer


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("name", metavar="NAME", help="the service's name")
    parser.add_argument("--force", action="store_true", help="even if another worker started it")


def run(arguments: Namespace) -> Answer:
    """Stop it and answer."""
    context = context_of(arguments)
    report = stop(context, backends(context), arguments.name, force=arguments.force)
    answer = report_answer(report)
    answer = answer._replace(data={"name": arguments.name, **answer.data})
    if report.removed or report.already_gone or report.remaining or report.left:
        return answer
    return answer._replace(text=None, words=(f"corral: {arguments.name} does not run",))
