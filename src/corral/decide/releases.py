"""What two spellings of a release have in common: the one form that names its lock."""

from __future__ import annotations

from corral.errors import InvalidValueError

_INVISIBLE = "Cf"  # Unicode's category of what formats text without being seen


def canonicalize_release_id(release_id: str) -> str:
    """The one form of all spellings of a release id that a person would read as the same.

    Case, full-width and other compatibility forms (NFKC), invisible characters, outer white space
    and the amount of inner white space do not count, nor does a `v` before a digit: `v1.0`,
    ` V1.0 ` and `v 1.0` are `1.0`. Dots do: `v10` is `10`. The result is its own canonical form.

    Raises InvalidValueError for what is no text and for an id of which nothing is left.
    """
    if not isinstance(release_id, str):
        raise InvalidValueError(
            f"a release id is text, not {release_id!r}", remedy="name the release, as in v1.0"
        )
    folded = _folded(release_id)
    if not folded:
        raise InvalidValueError("the release id is empty", remedy="name the release, as in v1.0")
    number = folded.removeprefix("v").lstrip()
    return number if number[:1].isdecimal() else folded


def _folded(text: str) -> str:
    """Case, form and white space folded, again and again until nothing changes any more."""
    before = None
    while text != before:
        before = text
        text = " ".join(_plain(text).casefold().split())
    return text


def _plain(text: str) -> str:
    if text.isascii():
        return text
    from unicodedata import category, normalize

    return normalize("NFKC", "".join(c for c in text if category(c) != _INVISIBLE))
