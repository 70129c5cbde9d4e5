"""What `corral keep` has named: the thing itself and, of a process, everything below it."""

from __future__ import annotations

from corral.model.resource import KEPT_BY, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from corral.model.resource import Sighting

_BOOT = KEPT_BY.index("boot_id")
_PID = KEPT_BY.index("pid")
_START = KEPT_BY.index("start_ticks")


def is_kept(sighting: Sighting, named: Collection[tuple[str, str]]) -> bool:
    """Whether one of the pairs of kind and `keep_id` that were named keeps it.

    A server whose parts were ended one by one would be kept in name only, so a process keeps what
    it has started as well.
    """
    if not named:
        return False
    if (sighting.kind.value, sighting.keep_id) in named:
        return True
    if sighting.kind is not Kind.PROCESS or not sighting.ancestors:
        return False
    boot_id = str(dict(sighting.identity).get("boot_id", ""))
    above = {(str(pid), str(start)) for pid, start in sighting.ancestors}
    return any(
        kind == Kind.PROCESS.value and _names_one_of(key.split("@"), above, boot_id)
        for kind, key in named
    )


def _names_one_of(values: list[str], above: set[tuple[str, str]], boot_id: str) -> bool:
    if len(values) != len(KEPT_BY):
        return False
    return values[_BOOT] == boot_id and (values[_PID], values[_START]) in above
