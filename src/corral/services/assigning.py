"""A port without a registry that the kernel would give: the stateless preference, asked twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.render import assign
from corral.render.ids import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def assign_port(
    worktree_id: str,
    taken: Iterable[int] | None = None,
    base: int = 8000,
    max_search: int = 200,
    *,
    probe: Callable[[int], bool] | bool = False,
    namespace: str = NAMESPACE,
) -> int:
    """A free port in `[base, base + max_search)`, the same in every process for the same inputs.

    The search starts at an offset that SHA-256 of the id gives, so worktrees tend to differ. It
    wraps around and skips `taken`; the range ends at 65535. `probe=True` also skips ports that
    somebody has on this machine now (IPv4, IPv6, loopback and wildcard); a function of one's own,
    which tells whether a port is free, may be given instead. Two worktrees that do not know of each
    other can still get the same port: only a claim is sure.

    Raises InvalidValueError for an empty id, a wrong number, or when no port is free, and
    EnumerationError when the kernel cannot be asked.
    """
    chosen = probe if callable(probe) else None
    if probe is True:
        from corral.kernel.sockets import port_is_free

        chosen = port_is_free
    return assign.assign_port(
        worktree_id, taken, base, max_search, probe=chosen, namespace=namespace
    )
