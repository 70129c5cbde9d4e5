"""Rows for a person: headed, and wrapped to its width, in a terminal; plain lines when piped."""

from __future__ import annotations

import os
import sys

from corral.cli.output import printable
from corral.decide.durations import format_age
from corral.model.resource import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corral.model.resource import Judgement, Sighting

_SHORT = 16
_WIDEST, _NARROW = 48, 24
_ROOMY = 120  # columns of a terminal in which a long name has its place
_LEAST = 24  # columns that are worth wrapping words into


def rows(
    title: str,
    judgements: Sequence[Judgement],
    now: float,
    *,
    why: bool = True,
    places: Mapping[str, str] | None = None,
) -> str:
    """A titled block, one line for each resource; "" when there are none.

    `why` adds the reason. `places`: the directory of each environment's id, for a column that
    tells where a thing belongs. A supervisor beside what it supervises says nothing to a person.
    """
    shown = [j for j in judgements if j.sighting.state != "supervisor"] or list(judgements)
    if not shown:
        return ""
    cells = [
        (
            *_cells(judgement, now),
            *(() if places is None else (places.get(judgement.environment or "", "-"),)),
            *((judgement.reason,) if why else ()),
        )
        for judgement in shown
    ]
    return f"{heading(title)}\n{columns(cells)}"


def heading(title: str) -> str:
    """A title, bold where a terminal looks that has not declined such things (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return title if plain or not sys.stdout.isatty() else f"\033[1m{title}\033[0m"


def terminal_width() -> int | None:
    """The columns of the terminal that looks, None where none does."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        # A pipe or a file, or no stdout at all.
        return None


def _cells(judgement: Judgement, now: float) -> tuple[str, ...]:
    sighting = judgement.sighting
    age = format_age(now - sighting.created_at) if sighting.created_at is not None else "-"
    whose = judgement.session or judgement.owner or judgement.environment or "-"
    roomy = (terminal_width() or _ROOMY) >= _ROOMY
    return (
        sighting.kind.value,
        cut(sighting.name or "-", _WIDEST if roomy else _NARROW),
        _id(sighting),
        sighting.state,
        age,
        whose,
    )


def _id(sighting: Sighting) -> str:
    """The id as a person would type it: a pid, a short container id, or the last part of a path."""
    if sighting.kind is Kind.PROCESS:
        return f"pid {sighting.id}"
    return cut(sighting.id.rsplit("/", 1)[-1], _SHORT)


def cut(text: str, limit: int) -> str:
    """The text, cut to `limit` characters where it is longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def columns(cells: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Cells in columns, two spaces apart, indented by two; control characters made visible.

    In a terminal `heads` stand above them, and the last column is wrapped between its words, so
    that a row stays a row. "" when there are no cells.
    """
    clean = [[printable(c).replace("\n", " ").replace("\t", " ") for c in row] for row in cells]
    if not clean:
        return ""
    width = terminal_width()
    headed = [list(heads)] if heads and width is not None else []
    widths = [max(len(row[i]) for row in (*headed, *clean)) for i in range(len(clean[0]))]
    lines = [line for row in clean for line in _row(row, widths, width)]
    titles = [heading(line) for row in headed for line in _row(row, widths, width)]
    return "\n".join((*titles, *lines)) + "\n"


def _row(row: Sequence[str], widths: Sequence[int], width: int | None) -> list[str]:
    """The lines of one row; the words of its last cell go on below where they begin."""
    *first, last = row
    head = "  " + "".join(f"{c.ljust(w)}  " for c, w in zip(first, widths, strict=False))
    if width is None or len(head) + len(last) <= width:
        return [(head + last).rstrip()]
    if width - len(head) < _LEAST:
        return [head.rstrip(), *(f"      {words}" for words in _wrapped(last, width - 6))]
    begin, *more = _wrapped(last, width - len(head))
    return [head + begin, *(" " * len(head) + words for words in more)]


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines of whole words; a word that is longer than a line has one of its own."""
    lines = [""]
    for word in text.split(" "):
        fits = len(lines[-1]) + 1 + len(word) <= width
        if not lines[-1]:
            lines[-1] = word
        elif fits:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
