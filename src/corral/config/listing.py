"""Every key with its value and its source, as `corral config` shows them."""

from __future__ import annotations

from corral.config.schema import RULES
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from corral.config.settings import Settings


class Setting(NamedTuple):
    """One key in force: `value` is text, a number or a tuple of text; None is unset."""

    key: str
    value: Any
    source: str


def listing(settings: Settings) -> tuple[Setting, ...]:
    """All keys in the order of the reference; the source of what nobody set is "default"."""
    sources = dict(settings.sources)
    return tuple(
        Setting(key, value, sources.get(key, "default"))
        for rule in RULES
        for key, value in _values(rule.key, settings)
    )


def _values(key: str, settings: Settings) -> Iterator[tuple[str, Any]]:
    section, _, last = key.rpartition(".")
    if section == "ports.*":
        for wish in settings.ports:
            yield f"ports.{wish.name}.{last}", getattr(wish, last)
    elif key == "vars.*":
        for name, value in settings.vars:
            yield f"vars.{name}", value
    else:
        yield key, _fixed(settings)[key]


def _fixed(settings: Settings) -> dict[str, Any]:
    database = settings.database
    return {
        "namespace": settings.namespace,
        "pool.first": settings.pool.first,
        "pool.last": settings.pool.last,
        "database.isolation": database.isolation,
        "database.url": database.url or None,
        "database.seed": database.seed or None,
        "database.template.migrate": database.migrate or None,
        "database.template.inputs": database.inputs,
        "compose.files": settings.compose_files,
        "files.link": settings.link,
        "files.copy": settings.copy,
        "setup.after_up": settings.after_up,
        "outputs.dotenv": settings.dotenv,
        "keeper.reap": settings.reap,
        "keeper.grace": settings.grace,
        "protect.programs": tuple(sorted(settings.protect)),
    }
