"""Questions to a person in a terminal; scripts have said what they want by calling."""

from __future__ import annotations

import sys

from corral.cli.output import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace


def can_ask() -> bool:
    """Whether a person is there to read a question and to answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Whether a person answers yes; anything else, and the end of input, is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def approved(what: str, arguments: Namespace) -> bool:
    """Whether to go on with `what`, which destroys something: asked in a terminal only.

    `--yes` and `--json` say it beforehand.
    """
    if arguments.yes or arguments.json or not can_ask():
        return True
    say(what)
    return confirmed("go on?")
