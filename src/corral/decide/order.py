"""The order in which kinds are removed: what uses goes before what is used."""

from __future__ import annotations

from corral.model.resource import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.resource import Judgement

ORDER: tuple[Kind, ...] = tuple(Kind)


def stages(targets: Iterable[Judgement]) -> tuple[tuple[Kind, tuple[Judgement, ...]], ...]:
    """The targets grouped by kind, in the order of removal; kinds without targets are left out."""
    grouped: dict[Kind, list[Judgement]] = {}
    for target in targets:
        grouped.setdefault(target.sighting.kind, []).append(target)
    return tuple((kind, tuple(grouped[kind])) for kind in ORDER if kind in grouped)
