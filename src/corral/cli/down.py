"""`corral down`: give the environment up, with its data unless `--keep-data`."""

from __future__ import annotations

from corral.cli.asking import approved
from corral.cli.output import EXIT_OK, Answer, Problem
from corral.cli.reap import report_answer
from corral.cli.surroundings import context_of
from corral.cli.teardown_text import report_text
from corral.errors import NotFoundError
from corral.model.report import Report
from corral.services import giving_up
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("--keep-data", action="store_true", help="leave databases and volumes")
    parser.add_argument("--yes", action="store_true", help="act without asking")
    parser.add_argument("--force", action="store_true", help="even if another owner lives here")


def run(arguments: Namespace) -> Answer:
    """Take the environment's things down, then its files and claims."""
    context = context_of(arguments)
    try:
        environment = giving_up.check(context, force=arguments.force)
        if not _approved(arguments, environment.place.path):
            return Answer({}, words=("nothing was done",))
        done = giving_up.give_up(
            context, backends(context), keep_data=arguments.keep_data, force=arguments.force
        )
    except NotFoundError as error:
        words = f"{error.message}: nothing is to be given up"
        return report_answer(Report())._replace(text=None, words=(words,))
    answer = report_answer(done.report)
    problems = [
        Problem("left", f"{path}: {reason}", path)
        for path, result, reason in done.files
        if result == "left"
    ]
    if done.stays and answer.status == EXIT_OK:
        words = f"the environment stays: {done.stays}"
        problems.append(Problem("stays", words, environment.id, "end that, then run it again"))
    words = "" if done.stays else f"gave up {environment.id} of {environment.place.path}\n"
    text = report_text(done.report) if any(done.report[:3]) else ""
    return answer._replace(text=lambda: text + words, problems=(*answer.problems, *problems))


def _approved(arguments: Namespace, path: str) -> bool:
    """Ask a person in a terminal, since data goes; scripts have said it by calling."""
    what = "its processes and files" if arguments.keep_data else "its processes, files and data"
    return approved(f"this gives up the environment of {path}: {what}", arguments)
