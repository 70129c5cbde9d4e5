"""Spans of time as people write and read them."""

from __future__ import annotations

import time

from corral.errors import InvalidValueError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def parse_duration(text: str, what: str = "duration") -> float:
    """Seconds of "90", "90s", "5m", "2h", "1d", "1w", "1h30m"; InvalidValueError otherwise."""
    total, number = 0.0, ""
    rest = text.strip().lower()
    if rest and all(c.isdigit() or c == "." for c in rest):
        rest += "s"
    for character in rest:
        if character.isascii() and (character.isdigit() or character == "."):
            number += character
            continue
        if character not in _UNITS or not number or number.count(".") > 1 or number == ".":
            break
        total += float(number) * _UNITS[character]
        number = ""
    else:
        if rest and not number:
            return total
    raise InvalidValueError(
        f"{what}: {text!r} is not a span of time", remedy="write it like 90s, 5m, 2h or 1d"
    )


def format_age(seconds: float) -> str:
    """An age in one unit that a person can take in: 42s, 5m, 3h, 2d."""
    value = max(0.0, seconds)
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if value >= size:
            return f"{int(value // size)}{unit}"
    return f"{int(value)}s"


def local_time(seconds: float) -> str:
    """Unix time as people here write it, "?" for what no calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        # Of a torn row or note.
        return "?"
