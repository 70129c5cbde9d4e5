"""Times as engines write them (RFC 3339) as unix times, without importing datetime."""

from __future__ import annotations

_EPOCH = 1970
_FEBRUARY = 2
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_SECONDS_END = 19  # of YYYY-MM-DDTHH:MM:SS


def instant(text: str) -> float | None:
    """Seconds since 1970 UTC, or None for what is no such time."""
    try:
        year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
        hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:_SECONDS_END])
        fraction, zone = _split(text[_SECONDS_END:])
        offset = _offset(zone)
    except ValueError:
        return None
    if year < _EPOCH or not 1 <= month <= len(_DAYS_BEFORE_MONTH):  # Go: year 1 is "not known"
        return None
    seconds = ((_days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second
    return seconds - offset + fraction


def _split(rest: str) -> tuple[float, str]:
    """The fraction of a second, and the zone behind it."""
    if not rest.startswith("."):
        return 0.0, rest.strip()
    behind = rest[1:].lstrip("0123456789")
    return float(rest[: len(rest) - len(behind)]), behind.strip()


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar."""
    past = year - 1
    leaps = past // 4 - past // 100 + past // 400 - 477
    leap_day = month > _FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (year - _EPOCH) * 365 + leaps + _DAYS_BEFORE_MONTH[month - 1] + leap_day + day - 1


def _offset(zone: str) -> int:
    """Seconds east of Greenwich of "Z", "+01:00" or "+0100 CET". Raises ValueError."""
    if zone in {"Z", "z"}:
        return 0
    if zone[:1] not in {"+", "-"}:
        raise ValueError(zone)
    digits = zone[1:6].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    return -seconds if zone[0] == "-" else seconds
