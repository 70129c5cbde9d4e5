"""Variables in Compose files, expanded as Compose expands them, to know ports and names.

`$NAME`, `${NAME}`, and `-`, `:-`, `+`, `:+`, `?`, `:?` with a word that may hold variables itself;
`$$` is a dollar. Source: the Compose specification, chapter Interpolation.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-+?]")
_LINE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*"""
    r"""(?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>[^'"\n][^\n]*|))""",
    re.MULTILINE,
)


def expand(text: str, environ: Mapping[str, str]) -> str:
    """The text with its variables filled in; one that is missing, also a required one, is empty.

    Text that Compose would refuse (a brace that never closes) stays as it is.
    """
    parts: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0:
        parts.append(text[position:dollar])
        value, position = _reference(text, dollar, environ)
        parts.append(value)
    parts.append(text[position:])
    return "".join(parts)


def _reference(text: str, dollar: int, environ: Mapping[str, str]) -> tuple[str, int]:
    """What the `$` at that position stands for, and where the text goes on."""
    after = text[dollar + 1 : dollar + 2]
    if after == "$":
        return "$", dollar + 2
    if after == "{":
        end = closing_brace(text, dollar + 1)
        if end < 0:
            return text[dollar:], len(text)
        return _braced(text[dollar + 2 : end], environ), end + 1
    match = _NAME.match(text, dollar + 1)
    if match is None:
        return "$", dollar + 1
    return environ.get(match[0], ""), match.end()


def closing_brace(text: str, opening: int) -> int:
    """Where the brace that opens at `opening` is closed, -1 if nowhere."""
    depth = 0
    for position in range(opening, len(text)):
        if text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return -1


def _braced(inner: str, environ: Mapping[str, str]) -> str:
    name = _NAME.match(inner)
    if name is None:
        return f"${{{inner}}}"
    value = environ.get(name[0])
    rest = inner[name.end() :]
    operator = _OPERATOR.match(rest)
    if operator is None:
        return value or ""
    present = value is not None and (value != "" or not operator[0].startswith(":"))
    word = rest[operator.end() :]
    match operator[0][-1]:
        case "-":
            return str(value) if present else expand(word, environ)
        case "+":
            return expand(word, environ) if present else ""
        case _:
            return value or ""


def split_outside(text: str, separator: str) -> list[str]:
    """The text split at a character, but not within `${...}`."""
    parts, start, position = [], 0, 0
    while position < len(text):
        if text.startswith("${", position):
            end = closing_brace(text, position + 1)
            position = len(text) if end < 0 else end
        elif text[position] == separator:
            parts.append(text[start:position])
            start = position + 1
        position += 1
    parts.append(text[start:])
    return parts


def dotenv_pairs(text: str) -> Iterator[tuple[str, str]]:
    """The variables of a project's `.env`, as far as ports and names need them: one line each."""
    for match in _LINE.finditer(text):
        if match["single"] is not None:
            yield match["name"], match["single"]
        elif match["double"] is not None:
            yield match["name"], re.sub(r"\\([\\\"$])", r"\1", match["double"])
        else:
            yield match["name"], re.sub(r"(^|[ \t])#.*", "", match["bare"]).strip()
