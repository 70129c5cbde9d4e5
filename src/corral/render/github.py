"""Lines for the file that `GITHUB_ENV` names on a GitHub Actions runner.

A value on one line is `NAME=value`; one with line breaks stands between two equal delimiter lines
that occur nowhere in it. The runner knows no quotes, no escapes and no comments, so there is no
header; it refuses or ignores some names. Source: the runner's documentation of workflow commands.
"""

from __future__ import annotations

import os

from corral.errors import InvalidValueError
from corral.render.variables import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.render.variables import Variables

_TRIES = 8


def random_delimiter() -> str:
    """A word that no value can know beforehand."""
    return f"corral_{os.urandom(16).hex()}"


def _delimiter(value: str, draw: Callable[[], str]) -> str:
    for _ in range(_TRIES):
        word = draw()
        if word and word.isascii() and word.isidentifier() and word not in value:
            return word
    raise InvalidValueError(
        f"no delimiter could be found in {_TRIES} draws", remedy="let corral draw it at random"
    )


def lines(variables: Variables, draw: Callable[[], str] = random_delimiter) -> str:
    """The lines to append. `draw` yields delimiters; one that occurs in the value is drawn anew."""
    written = []
    for name, value in variables:
        folded = name.upper()  # the runner compares without regard to case
        if folded == "NODE_OPTIONS" or folded.startswith(("GITHUB_", "RUNNER_")):
            raise refused(name, "a GitHub runner does not let a job set it", "choose another name")
        if "\n" in value or "\r" in value:
            word = _delimiter(value, draw)
            written.append(f"{name}<<{word}\n{value}\n{word}\n")
        else:
            written.append(f"{name}={value}\n")
    return "".join(written)
