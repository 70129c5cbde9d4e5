"""`corral config`: every setting with its value and its source."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.config.listing import Setting, listing
from corral.config.schema import SECTIONS
from corral.decide.database_urls import without_password
from corral.decide.spelling import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


_HEADS = ("KEY", "VALUE", "SOURCE")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("key", nargs="?", metavar="KEY", help="only this key, or this section")


def run(arguments: Namespace) -> Answer:
    """List the settings in force here."""
    context = context_of(arguments)
    wanted = arguments.key
    every = listing(context.settings)
    rows = [row for row in every if _matches(row, wanted)]
    if not rows and wanted not in SECTIONS:
        from corral.errors import NotFoundError

        known = {*SECTIONS, *(row.key for row in every)}
        raise NotFoundError(
            f"there is no setting {wanted!r} here{did_you_mean(wanted, known)}",
            remedy="see: corral config",
        )
    found = [{"key": r.key, "value": _plain(r.value), "source": r.source} for r in rows]
    return Answer(
        {"root": context.settings.root, "settings": found},
        lambda: (
            columns([(r.key, _written(r.value), r.source) for r in rows], _HEADS)
            or f"nothing is set in [{wanted}]\n"
        ),
    )


def _matches(row: Setting, wanted: str | None) -> bool:
    return wanted is None or row.key == wanted or row.key.startswith(f"{wanted}.")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _written(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value) or "[]"
    return f"{value:g}" if isinstance(value, float) else without_password(str(value)) or '""'
