"""What stands in a column, and the value it means. Pure: text in, values out.

Whatever does not have the expected shape raises InvalidValueError, which makes its row a
`BadRecord`. JSON is written in ASCII, so any text survives in it.
"""

from __future__ import annotations

import json
from math import isfinite

from corral.errors import InvalidValueError
from corral.model.owner import End
from corral.model.process import ProcessIdentity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import Enum
    from typing import Any, TypeVar

    Word = TypeVar("Word", bound=Enum)

Pairs = tuple[tuple[str, str | int], ...]

LARGEST = 2**63 - 1  # of the integers that SQLite stores

_write = json.JSONEncoder(separators=(",", ":")).encode


def parse(content: str) -> Any:
    """Any JSON value."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # torn, or garbage nested beyond sense
        raise InvalidValueError(f"it is no JSON: {_excerpt(content)}") from error


def parse_object(content: object) -> dict[str, Any]:
    """A JSON object."""
    value = parse(text(content))
    if not isinstance(value, dict):
        raise InvalidValueError(f"it is no JSON object: {_excerpt(content)}")
    return value


def encode_object(value: dict[str, Any]) -> str:
    """A JSON object in one line."""
    return _write(value)


def encode_pairs(pairs: Pairs) -> str:
    """A JSON list of [key, value]."""
    return _write(pairs)


def decode_pairs(content: object) -> Pairs:
    """Pairs of a key and a text or whole number, in their order; no key twice."""
    return as_pairs(parse(text(content)))


def as_pairs(found: object) -> Pairs:
    """The pairs that a parsed list of [key, value] holds."""
    if not isinstance(found, list):
        raise InvalidValueError(f"it is no list of pairs: {_excerpt(found)}")
    pairs = tuple(_pair(item) for item in found)
    if len({key for key, _ in pairs}) != len(pairs):
        raise InvalidValueError(f"a key stands twice in {_excerpt(found)}")
    return pairs


def _pair(item: object) -> tuple[str, str | int]:
    if isinstance(item, list) and len(item) == 2:  # noqa: PLR2004 (a pair)
        key, value = item
        if isinstance(key, str) and (isinstance(value, str) or _is_whole(value)):
            return key, value
    raise InvalidValueError(f"it is no pair of a key and a text or whole number: {_excerpt(item)}")


def process_pairs(process: ProcessIdentity) -> Pairs:
    """The pairs that name a process; an unknown pidfd inode is left out."""
    pairs: Pairs = (
        ("pid", process.pid),
        ("start_ticks", process.start_ticks),
        ("boot_id", process.boot_id),
        ("pid_namespace", process.pid_namespace),
    )
    inode = process.pidfd_inode
    return pairs if inode is None else (*pairs, ("pidfd_inode", inode))


def process_of(pairs: Pairs) -> ProcessIdentity:
    """The process that pairs name; keys that a newer corral added are passed over."""
    named = dict(pairs)
    boot_id = named.get("boot_id")
    if not isinstance(boot_id, str) or not boot_id:
        raise InvalidValueError("the identity of a process has no boot id")
    inode = _whole(named, "pidfd_inode") if "pidfd_inode" in named else None
    pid, ticks = _whole(named, "pid"), _whole(named, "start_ticks")
    return ProcessIdentity(pid, ticks, boot_id, _whole(named, "pid_namespace"), inode)


def _whole(named: dict[str, str | int], key: str) -> int:
    value = named.get(key)
    if not isinstance(value, int) or value < 0:
        raise InvalidValueError(f"the identity of a process has no valid {key}: {value!r}")
    return value


def encode_process(process: ProcessIdentity | None) -> str | None:
    """A process identity as JSON pairs; None stays None."""
    return None if process is None else _write(process_pairs(process))


def decode_process(content: object) -> ProcessIdentity | None:
    """The process identity that was encoded; None stays None."""
    return None if content is None else process_of(decode_pairs(content))


def encoded_process_range(pid: int) -> tuple[str, str]:
    """Between these two lies the encoded identity of any process with this pid."""
    start = _write([["pid", pid]])[:-1] + ","
    return start, start + "\x7f"


def encode_end(end: End | None) -> str | None:
    """When an epoch was first seen to be over, as JSON; None stays None."""
    return None if end is None else _write([end.boottime, end.suspended, end.boot_id])


def decode_end(content: object) -> End | None:
    """The end that was encoded; None stays None."""
    if content is None:
        return None
    match parse(text(content)):
        case [float() | int() as boottime, float() | int() as suspended, str() as boot_id, *_]:
            return End(number(boottime), number(suspended), boot_id)
        case found:
            raise InvalidValueError(f"it is no end of an epoch: {_excerpt(found)}")


def bind(*values: str | float | None) -> tuple[str | bytes | float | None, ...]:
    """The values as SQLite takes them: a text that is no Unicode (a path) becomes its bytes."""
    for value in values:
        if isinstance(value, str) and not value.isascii():
            return tuple(map(_bound, values))
    return values


def _bound(value: str | float | None) -> str | bytes | float | None:
    if isinstance(value, str) and not value.isascii() and _has_surrogate(value):
        return value.encode("utf-8", "surrogatepass")
    return value


def _has_surrogate(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def text(value: object) -> str:
    """A text column, also where `bind` stored bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise InvalidValueError(f"it is no text: {_excerpt(value)}") from error
    raise InvalidValueError(f"it is no text: {_excerpt(value)}")


def optional_text(value: object) -> str | None:
    """A text column that may be empty (NULL)."""
    return None if value is None else text(value)


def integer(value: object) -> int:
    """A column of whole numbers."""
    if not _is_whole(value):
        raise InvalidValueError(f"it is no whole number: {_excerpt(value)}")
    return value  # type: ignore[return-value]


def encode_unsigned(value: int) -> int:
    """A whole number of 64 bits, such as an inode's, as the signed one that SQLite stores."""
    return value - 2**64 if value > LARGEST else value


def decode_unsigned(value: object) -> int:
    """The number that was encoded."""
    found = integer(value)
    return found + 2**64 if found < 0 else found


def number(value: object) -> float:
    """A column of numbers, as seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidValueError(f"it is no number: {_excerpt(value)}")
    return float(value)


def optional_number(value: object) -> float | None:
    """A column of numbers that may be empty (NULL)."""
    return None if value is None else number(value)


def word(kind: type[Word], value: object) -> Word:
    """A column that holds one of an enum's words."""
    try:
        return kind(value)
    except ValueError as error:  # of a newer corral, or garbage
        raise InvalidValueError(f"{value!r} is no known {kind.__name__}") from error


def _is_whole(value: object) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and -LARGEST - 1 <= value <= LARGEST
    )


def _excerpt(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."  # noqa: PLR2004 (a line's width)
