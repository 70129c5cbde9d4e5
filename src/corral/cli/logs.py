"""`corral logs NAME [-f]`: what a detached service wrote, byte for byte."""

from __future__ import annotations

import sys

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.errors import UsageError
from corral.services import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("name", metavar="NAME", help="the service's name")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the service ends")


def run(arguments: Namespace) -> Answer:
    """Write the log to stdout; with --json its end as text."""
    if arguments.follow and arguments.json:
        raise UsageError("-f goes on, --json is one document", remedy="give one of them")
    context = context_of(arguments)
    log = logs.find_log(context, arguments.name)
    if arguments.json:
        return Answer(
            {
                "name": arguments.name,
                "path": log.path,
                "running": log.running,
                "text": logs.text_of(log),
            }
        )
    try:
        if arguments.follow:
            logs.follow_log(context, log, _write)
        else:
            logs.write_log(log, _write)
    except KeyboardInterrupt:
        # The usual way to leave -f.
        return Answer({})
    return Answer({})


def _write(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
