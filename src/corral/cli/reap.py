"""`corral reap` (or `teardown`): take down what this owner owns."""

from __future__ import annotations

from corral.cli import encoding
from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.cli.teardown_text import plan_text, report_text
from corral.model.report import Report
from corral.services.ending import chosen_job
from corral.services.owners import named_session
from corral.services.teardown import carry_out, exit_status, prepare
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corral.model.report import Plan


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--force", action="store_true", help="even if that session lives elsewhere")


def run(arguments: Namespace) -> Answer:
    """Reap and answer."""
    context = context_of(arguments, anywhere=True)
    job = chosen_job(context, force=arguments.force)
    if job is None:
        return report_answer(Report())
    chosen = backends(context)
    if arguments.dry_run:
        plan = prepare(context, chosen, job)
        answer, empty = plan_answer(plan), plan.empty
    else:
        report = carry_out(context, chosen, job)
        answer, empty = report_answer(report), not any(report[:3])
    stranger = job.adjust is not None  # a session id that no owner has
    if not (stranger and empty):
        return answer
    words = f"no owner has the session id {named_session(context)!r}, and nothing here carries it"
    return answer._replace(words=(words,))


def plan_answer(plan: Plan) -> Answer:
    """The answer to a dry run."""
    left = [j for j in plan.judgements if j.verdict.value == "UNKNOWN"]
    return Answer(
        encoding.plan_data(plan, left),
        lambda: plan_text(plan),
        problems=encoding.look_problems(plan.backends),
        status=exit_status(plan),
    )


def report_answer(report: Report) -> Answer:
    """The answer to a teardown."""
    return Answer(
        encoding.report_data(report),
        lambda: report_text(report),
        problems=(
            *encoding.look_problems(report.backends),
            *encoding.remaining_problems(report),
            *encoding.written_problems(report),
        ),
        status=exit_status(report),
    )
