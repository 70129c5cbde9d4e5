"""Ports as they are written on the command line: NAME or NAME=PREFERRED."""

from __future__ import annotations

from corral.config import PortWish
from corral.config.checks import WrongValueError, name
from corral.decide.ports import parse_port
from corral.errors import UsageError


def port_wish(text: str) -> PortWish:
    """The wish that the text stands for. Raises UsageError or InvalidValueError naming it."""
    word, equals, number = text.partition("=")
    try:
        name(word)
    except WrongValueError as error:
        raise UsageError(
            f"{word!r} cannot name a port",
            remedy="use letters, digits, '-' and '_', a letter first; write NAME or NAME=3000",
        ) from error
    return PortWish(word, parse_port(number, f"port {word}") if equals else None)
