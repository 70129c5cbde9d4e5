"""YAML as corral writes it: block style, every string in double quotes, Compose tags allowed.

Written by hand for two reasons: no YAML library is needed to write, and nothing is left to a
library's guess about which text a reader might take for a number, a truth value or a null.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Mapping: TypeAlias = "dict[str, Node]"
    Node: TypeAlias = "str | int | Mapping | list[Node] | Tagged | Literal | None"

_INDENT = "  "
_PLAIN_KEY = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
# words that some YAML reader takes for something other than text
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


class Tagged(NamedTuple):
    """A node with a tag of Compose's: `!override` or `!reset`."""

    tag: str
    node: Node


class Literal(NamedTuple):
    """Text in which Compose shall expand `${...}`; every other string has its `$` doubled."""

    text: str


def quoted(text: str) -> str:
    """The text as a double-quoted scalar that every YAML reader gives back unchanged."""
    if text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004


def escaped_for_compose(text: str) -> str:
    """The text with every `$` doubled, so that Compose expands nothing in it."""
    return text.replace("$", "$$")


def key(text: str) -> str:
    """A mapping key, bare where no YAML reader takes it for anything but this text."""
    plain = text and text[0] in _LETTERS and _PLAIN_KEY.issuperset(text)
    return text if plain and text.lower() not in _WORDS else quoted(text)


def dump(document: Mapping) -> str:
    """The document as YAML text with a final newline, in the order of the mappings."""
    return "".join([f"{line}\n" for line in _mapping(document, "")])


def _scalar(node: str | int | Literal | None) -> str:
    if isinstance(node, Literal):
        return quoted(node.text)
    if isinstance(node, str):
        return quoted(escaped_for_compose(node))
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    return str(node)


def _mapping(node: Mapping, indent: str) -> Iterator[str]:
    for name, value in node.items():
        yield from _entry(f"{indent}{key(name)}:", value, indent + _INDENT)


def _entry(head: str, node: Node, indent: str) -> Iterator[str]:
    if isinstance(node, Tagged):
        yield from _entry(f"{head} {node.tag}", node.node, indent)
    elif isinstance(node, dict) and node:
        yield head
        yield from _mapping(node, indent)
    elif isinstance(node, list) and node:
        yield head
        for item in node:
            yield from _item(item, indent)
    elif isinstance(node, dict | list):
        yield f"{head} {'{}' if isinstance(node, dict) else '[]'}"
    else:
        yield f"{head} {_scalar(node)}"


def _item(node: Node, indent: str) -> Iterator[str]:
    """One item of a sequence: a mapping begins on the line of the dash."""
    if isinstance(node, dict) and node:
        first, *rest = _mapping(node, indent + _INDENT)
        yield f"{indent}- {first.lstrip()}"
        yield from rest
    else:
        yield from _entry(f"{indent}-", node, indent + _INDENT)
