"""Edits of a JSON text that leave every other byte as it is: indentation, order, spelling.

Parsing and writing anew would lay out the user's whole file afresh. So only the containers on the
way to an edit are walked, and text is put in or cut out between two of their parts. The text must
be valid JSON, which `parse` sees to.
"""

from __future__ import annotations

import json

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANKS = " \t\r\n"
_UNIT = "  "
_DECODER = json.JSONDecoder()


class Part(NamedTuple):
    """One member of an object or item of an array, as offsets into the text.

    `start` to `end` is all of it, `value` where its value begins; `key` is "" for an item.
    """

    start: int
    value: int
    end: int
    key: str = ""


def parse(text: str) -> dict[str, Any]:
    """The object that a text is.

    Raises InvalidValueError for a text that is torn, is no object, or has a key twice (nobody can
    tell which one its reader takes).
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise InvalidValueError("is nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidValueError(f"is no JSON: {error.msg} ({place})") from error
    except InvalidValueError:
        raise
    except ValueError as error:  # a number with thousands of digits
        raise InvalidValueError(f"is no JSON that can be read: {error}") from error
    if not isinstance(found, dict):
        raise InvalidValueError("is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidValueError(f"has the key {twice!r} twice in one object")
    return found


def _no_number(word: str) -> None:
    raise InvalidValueError(f"is no JSON: {word} is no number there")


def root(text: str) -> int:
    """Where the text's one value begins."""
    return _skip(text, 0)


def parts(text: str, start: int) -> list[Part]:
    """The members or items of the container that begins at `start`, in order."""
    found = []
    is_object = text[start] == "{"
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        begin, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        found.append(Part(begin, at, end, key))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def value(text: str, part: Part) -> Any:
    """The value of a part."""
    return _DECODER.raw_decode(text, part.value)[0]


def inner_blanks(text: str, start: int) -> str:
    """What stands between the brackets of an empty container."""
    return text[start + 1 : _skip(text, start + 1)]


def add(text: str, start: int, value: Any, key: str = "") -> str:
    """The text with one more member (`key`) or item at the end of the container at `start`.

    It is laid out as its neighbours are: on lines of its own with their indentation, or in line.
    """
    known = parts(text, start)
    end = "\r\n" if "\r\n" in text else "\n"
    if known:
        last = known[-1].end
        indent = _line_indent(text[start + 1 : known[0].start])
        between = " " if indent is None else end + indent
        return text[:last] + "," + between + _written(text, value, key, indent, end) + text[last:]
    close = _skip(text, start + 1)
    outer = _indent_of_line(text, start)
    indent = None if _is_in_line(text) else outer + _unit(text)
    new = _written(text, value, key, indent, end)
    around = (end + indent, end + outer) if indent is not None else ("", "")
    return text[: start + 1] + around[0] + new + around[1] + text[close:]


def replace(text: str, part: Part, value: Any) -> str:
    """The text with another value, on one line, in a part's place."""
    return text[: part.value] + json.dumps(value, ensure_ascii=False) + text[part.end :]


def remove(text: str, start: int, index: int) -> str:
    """The text without one of several parts of the container, and without its comma."""
    known = parts(text, start)
    if index:
        return text[: known[index - 1].end] + text[known[index].end :]
    return text[: known[0].start] + text[known[1].start :]


def empty(text: str, start: int, blanks: str) -> str:
    """The text with nothing but blanks in the container that begins at `start`."""
    end = _DECODER.raw_decode(text, start)[1]
    return text[: start + 1] + blanks + text[end - 1 :]


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _written(text: str, value: Any, key: str, indent: str | None, end: str) -> str:
    unit = None if indent is None else _unit(text)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    head = f"{json.dumps(key, ensure_ascii=False)}: " if key else ""
    return head + (end + (indent or "")).join(lines)


def _line_indent(blanks: str) -> str | None:
    """The indentation that blanks end with, or None where they begin no line."""
    _, newline, indent = blanks.rpartition("\n")
    return indent if newline else None


def _indent_of_line(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : _skip(text, begin)]


def _unit(text: str) -> str:
    """What the file indents by: the blanks before its first member, else two spaces."""
    start = root(text)
    indent = _line_indent(text[start + 1 : _skip(text, start + 1)]) if parts(text, start) else None
    return indent or _UNIT


def _is_in_line(text: str) -> bool:
    """Whether the file is one line with something in it."""
    start = root(text)
    return bool(parts(text, start)) and "\n" not in text.strip()
