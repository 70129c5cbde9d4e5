"""What a value of a setting may be. Each check returns the value as settings keep it.

A value that is wrong raises `WrongValueError`; its text, if any, says more than the key's own
`expected` can.
"""

from __future__ import annotations

import math

from corral.decide.durations import parse_duration
from corral.decide.ports import HIGHEST, LOWEST
from corral.errors import InvalidValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Check = Callable[[Any], Any]

NAMESPACE_LIMIT = 20
NAME_LIMIT = 40
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")


class WrongValueError(ValueError):
    """The value cannot be accepted; the text says why where the key's words do not.

    `remedy` takes the place of the usual one, where there is a better.
    """

    def __init__(self, why: str = "", remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


def text(value: Any) -> str:
    """Text that a variable and a command line can carry."""
    if not isinstance(value, str):
        raise WrongValueError
    if "\0" in value:
        raise WrongValueError("it holds a NUL character")
    return value


def filled(value: Any) -> str:
    """Text with something in it."""
    if not text(value).strip():
        raise WrongValueError("it is empty")
    return str(value)


def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(value: Any) -> str:
        if value not in words or not isinstance(value, str):
            raise WrongValueError
        return value

    return check


def many(check: Check) -> Check:
    """A list whose items all pass `check`, as a tuple."""

    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise WrongValueError
        return tuple(check(item) for item in value)

    return check_all


def port(value: Any) -> int:
    """A port number."""
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST <= value <= HIGHEST:
        raise WrongValueError
    return value


def seconds(value: Any) -> float:
    """Seconds as a number, or a span of time in text."""
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except InvalidValueError as error:
            raise WrongValueError from error
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongValueError
    if not math.isfinite(value) or value < 0:
        raise WrongValueError
    return float(value)


def namespace(value: Any) -> str:
    """A word that every name and label can begin with, short enough to leave room for digits."""
    letters = _LETTERS | _DIGITS | {"-"}
    word = text(value)
    if not word or len(word) > NAMESPACE_LIMIT or not letters.issuperset(word):
        raise WrongValueError
    if word[0] not in _LETTERS or word.endswith("-") or "--" in word:
        raise WrongValueError
    return word


def name(value: Any) -> str:
    """The name of a port: a word that a variable and a URL can be made of."""
    letters = _LETTERS | _DIGITS | {"-", "_"}
    word = text(value)
    if not 0 < len(word) <= NAME_LIMIT or not letters.issuperset(word.lower()):
        raise WrongValueError
    if word[0].lower() not in _LETTERS or not word[-1].isalnum():
        raise WrongValueError
    return word


def variable(value: Any) -> str:
    """The name of an environment variable that steers no program, and is none of corral's own."""
    from corral.decide.steering import steers

    word = text(value)
    if not word.isascii() or not word.isidentifier():
        raise WrongValueError
    if word.startswith("CORRAL_"):
        raise WrongValueError("names that begin with CORRAL_ are corral's own")
    if steers(word):
        why = f"{word} changes which programs run or whom they talk to, so no configuration sets it"
        remedy = "choose another name, or set it yourself in the shell or in the command"
        raise WrongValueError(why, remedy)
    return word


def inside(value: Any) -> str:
    """A relative path that stays below the project's directory."""
    path = filled(value)
    parts = path.split("/")
    if path.startswith(("/", "~")) or ".." in parts or "\n" in path:
        raise WrongValueError("it leaves the project's directory")
    if not any(part not in {"", "."} for part in parts):
        raise WrongValueError("it is the project's directory itself")
    if ".git" in parts:
        raise WrongValueError("it lies in git's own directory")
    return path


def inside_or_none(value: Any) -> str:
    """As `inside`; empty text stands for none."""
    return "" if value == "" else inside(value)
