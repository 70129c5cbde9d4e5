"""`corral cleanup`: orphans of every backend. Preview, ask, look again, act."""

from __future__ import annotations

import time

from corral.cli.asking import can_ask, confirmed
from corral.cli.encoding import missing_problems
from corral.cli.output import Answer, say, show_text
from corral.cli.reap import plan_answer, report_answer
from corral.cli.surroundings import context_of
from corral.cli.teardown_text import plan_text
from corral.decide.durations import parse_duration
from corral.services.ending import cleanup_job
from corral.services.pruning import prune
from corral.services.teardown import carry_out, prepare
from corral.services.view import look, note_ends
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from corral.contracts import Backend
    from corral.model.report import Plan
    from corral.services.context import Context
    from corral.services.teardown import Teardown


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="act without asking")
    parser.add_argument(
        "--older-than", metavar="AGE", help="only what is older, as 90s, 5m, 2h, 1d"
    )
    parser.add_argument(
        "--backend", metavar="B", action="append", default=[], help="only this backend; repeatable"
    )
    parser.add_argument("--data", action="store_true", help="also databases, volumes and files")


def run(arguments: Namespace) -> Answer:
    """Preview, ask, and act on what was approved and is still there."""
    age = parse_duration(arguments.older_than, "--older-than") if arguments.older_than else None
    context = context_of(arguments, anywhere=True)
    chosen = backends(context, arguments.backend)
    job = cleanup_job(now=time.time(), older_than=age, data=arguments.data)
    plan = prepare(context, chosen, job)
    answer = _acted(arguments, context, chosen, job, plan)
    return answer._replace(problems=(*answer.problems, *missing_problems(look(context))))


def _acted(
    arguments: Namespace, context: Context, chosen: Sequence[Backend], job: Teardown, plan: Plan
) -> Answer:
    if arguments.dry_run:
        return plan_answer(plan)
    note_ends(context)
    if not arguments.yes and not plan.empty:
        if arguments.json or not can_ask():
            say("shown only; --yes takes them down")
            return plan_answer(plan)
        show_text(plan_text(plan).rstrip())
        if not confirmed("take these down?"):
            return plan_answer(plan)._replace(text=lambda: "nothing was done\n")
    report = carry_out(context, chosen, job, shown=plan)
    if not arguments.backend:
        prune(context, chosen)
    return report_answer(report)
