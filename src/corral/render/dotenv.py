r"""Dotenv files, written so that very different readers agree.

Each value that is written comes back the same from python-dotenv (interpolation on or off),
from Compose (the project's `.env` and a service's `env_file`), and from a file sourced by sh,
dash, bash or zsh. These readers disagree on nearly everything, so each value takes the first of
three forms that all of them read alike:

- bare, if it is made of letters, digits and `_./:@%+,-` only (this form alone also survives
  `env $(cat FILE)`);
- in single quotes, where the readers differ only in what a backslash before a backslash or a quote
  means, and in that python-dotenv expands `${...}`;
- in double quotes with `\\` and `\"`, where `$` and a backtick mean something to some and cannot
  be escaped for all.

What none of the three can carry is refused: a carriage return, `${...}`, and a value that needs
double quotes (it has a single quote, `\\`, or ends in a backslash) while it holds `$` or a
backtick. Names such as UID, which shells keep for themselves (`render.shell.SPECIAL`), are
written, for Compose files use them; sourcing such a file is not promised.
"""

from __future__ import annotations

from corral.render.shell import PLAIN
from corral.render.variables import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.variables import Variables

_REMEDY = "use the format shell or json for it, or change the value"


def _expands(value: str) -> bool:
    """Whether python-dotenv would expand something: `${name}` or `${name:-default}`."""
    import re

    return re.search(r"\$\{[^}:]*(?::-[^}]*)?\}", value) is not None


def quote(name: str, value: str) -> str:
    """The value in the form that every reader takes alike, else an error naming the variable."""
    if PLAIN.issuperset(value):
        return value
    if "\r" in value:
        raise refused(name, "dotenv readers disagree on a carriage return", _REMEDY)
    if "${" in value and _expands(value):
        raise refused(name, "python-dotenv would expand ${...} however it is quoted", _REMEDY)
    if "'" not in value and "\\\\" not in value and not value.endswith("\\"):
        return f"'{value}'"
    if "$" in value or "`" in value:
        raise refused(
            name, "no quoting carries its quotes or backslashes together with $ or `", _REMEDY
        )
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lines(variables: Variables) -> str:
    """One `NAME=value` line per variable (a value with line breaks spans several)."""
    return "".join([f"{name}={quote(name, value)}\n" for name, value in variables])
