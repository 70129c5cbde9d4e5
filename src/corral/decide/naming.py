"""Names that are safe everywhere and never shared by two ids.

A claimed name is a readable slug, a separator, and the first 8 hex digits of the SHA-256 of the
full id. The slug is cut so that the digits always fit the limit of the place.
"""

from __future__ import annotations

from hashlib import sha256

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


class NameRule(NamedTuple):
    """What a place accepts: `limit` bytes, `separator` between words, `first` if a letter leads."""

    limit: int
    separator: str
    letter_first: bool = False


POSTGRES = NameRule(63, "_", letter_first=True)
DOCKER = NameRule(63, "-")
COMPOSE = NameRule(63, "-")
CLUSTER = NameRule(32, "-", letter_first=True)
FILE = NameRule(63, "-")


def digest8(text: str) -> str:
    """The first 8 hex digits of SHA-256 over the text in UTF-8 (lone surrogates kept apart)."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def slug(text: str, separator: str) -> str:
    """Lower-case ASCII letters and digits of `text`, other runs replaced by one separator."""
    words: list[str] = []
    word = ""
    for character in text.lower():
        if character in _LETTERS:
            word += character
        elif word:
            words.append(word)
            word = ""
    if word:
        words.append(word)
    return separator.join(words)


def claimed_name(prefix: str, readable: str, full_id: str, rule: NameRule) -> str:
    """`prefix-readable-digits`, at most `rule.limit` bytes, distinct for distinct `full_id`.

    Raises InvalidValueError when the prefix alone leaves no room for the digits.
    """
    head = slug(prefix, rule.separator)
    if rule.letter_first and (not head or not head[0].isalpha()):
        head = f"c{rule.separator}{head}" if head else "c"
    digits = digest8(full_id)
    room = rule.limit - len(digits) - len(rule.separator)
    body = slug(readable, rule.separator)
    stem = f"{head}{rule.separator}{body}" if body and head else head or body
    if len(head) > room:
        raise InvalidValueError(
            f"the namespace {prefix!r} is too long for a name of {rule.limit} characters",
            remedy="choose a shorter namespace",
        )
    stem = stem[:room].rstrip("-_")
    return f"{stem}{rule.separator}{digits}" if stem else digits
