"""What somebody who mistyped a word probably meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALIKE = 0.6


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the known word that is most alike, "" where none is."""
    # Only a mistake needs it, and it brings `re` and `heapq`.
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=1, cutoff=_ALIKE)
    return f"; did you mean {found[0]}?" if found else ""
