"""`corral events`: the journal. When, what, by which trigger, on which proof."""

from __future__ import annotations

import time

from corral.cli import encoding
from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns, cut
from corral.decide.durations import local_time, parse_duration
from corral.store import journal, spool
from corral.store.journal import SUPERVISOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corral.model.record import Event

_MOST = 20_000
_NAME = 32
_HEADS = ("WHEN", "WHAT", "KIND", "NAME", "ID", "BY", "PROOF AND REASON")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument(
        "--since", metavar="T", help="only lines younger than this, as 90s, 5m, 2h, 1d"
    )


def run(arguments: Namespace) -> Answer:
    """Read the journal and answer."""
    age = parse_duration(arguments.since, "--since") if arguments.since else None
    context = context_of(arguments, anywhere=True)
    since = time.time() - age if age is not None else 0.0
    with context.registry.read() as conn:
        lines = journal.since(conn, since, _MOST)
    lines += [line for line in spool.lines(context.state_dir) if line.at >= since]
    return Answer({"events": [encoding.event(line) for line in lines]}, lambda: _text(lines))


def _text(lines: list[Event]) -> str:
    return columns([_cells(line) for line in lines], _HEADS) or "no events\n"


def _cells(line: Event) -> tuple[str, ...]:
    kind, detail = line.kind, line.detail
    if detail.startswith(SUPERVISOR):
        kind, detail = SUPERVISOR.rstrip("; "), detail.removeprefix(SUPERVISOR)
    return (
        local_time(line.at),
        line.action,
        kind or "-",
        cut(line.name or "-", _NAME),
        line.resource.rsplit("/", 1)[-1] or "-",
        line.trigger or "-",
        "; ".join(filter(None, (line.proof, detail))) or "-",
    )
