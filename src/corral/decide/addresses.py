"""Which loopback address an environment would like. A preference, never the claim."""

from __future__ import annotations

from corral.decide.ports import preferred_offset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# 127.0.x.y is left out: 127.0.0.1 is everybody's, and distributions use 127.0.0.53 and 127.0.1.1.
_SECOND, _THIRD, _FOURTH = 254, 255, 254
SIZE = _SECOND * _THIRD * _FOURTH


def address_at(place: int) -> str:
    """The address of a place from 0 to SIZE - 1, from 127.1.0.1 to 127.254.254.254."""
    rest, fourth = divmod(place, _FOURTH)
    second, third = divmod(rest, _THIRD)
    return f"127.{second + 1}.{third}.{fourth + 1}"


def addresses(repository: str, worktree: str) -> Iterator[str]:
    """Every address of the pool once, the preferred one first."""
    start = preferred_offset(repository, worktree, "address", SIZE)
    return (address_at((start + step) % SIZE) for step in range(SIZE))
