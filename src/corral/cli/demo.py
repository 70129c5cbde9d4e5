"""`corral demo`: the main job, end to end, in a temporary directory."""

from __future__ import annotations

import sys
import time

from corral.cli.output import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """There is nothing to configure."""
    del parser, command


def run(arguments: Namespace) -> Answer:
    """Tell the story; with --json on stderr, so that stdout holds one document."""
    from corral.demo.story import tell_story

    stream = sys.stderr if arguments.json else sys.stdout

    def say(text: str) -> None:
        stream.write(text)
        stream.flush()

    began = time.monotonic()
    tell_story(say)
    seconds = round(time.monotonic() - began, 1)
    return Answer(
        {"seconds": seconds}, lambda: f"\nEverything held, in {seconds} s, and nothing is left.\n"
    )
