"""A port for a worktree without a registry: a preference that skips what is known to be taken."""

from __future__ import annotations

from hashlib import sha256

from corral.decide.ports import HIGHEST, check_port
from corral.errors import InvalidValueError
from corral.render.ids import NAMESPACE, check_namespace, check_worktree_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def assign_port(
    worktree_id: str,
    taken: Iterable[int] | None = None,
    base: int = 8000,
    max_search: int = 200,
    *,
    probe: Callable[[int], bool] | None = None,
    namespace: str = NAMESPACE,
) -> int:
    """A free port in `[base, base + max_search)`, the same in every process for the same inputs.

    The search starts at an offset that SHA-256 of the id gives, so worktrees tend to differ. It
    wraps around and skips `taken`; the range ends at 65535. `probe(port)` tells whether the kernel
    would give the port (None: it is not asked). `namespace` is checked and changes nothing.
    Two worktrees that do not know of each other can still get the same port: only a claim is sure.

    Raises InvalidValueError for an empty id, a wrong number, or when no port is free.
    """
    check_namespace(namespace)
    text = check_worktree_id(worktree_id).encode("utf-8", "surrogatepass")
    first = check_port(base, "base")
    avoided = frozenset(check_port(port, "taken") for port in taken or ())
    size = min(_check_search(max_search), HIGHEST + 1 - first)
    start = int.from_bytes(sha256(text).digest()[:8], "big") % size
    for step in range(size):
        port = first + (start + step) % size
        if port not in avoided and (probe is None or probe(port)):
            return port
    raise InvalidValueError(
        f"no free port in [{first}, {first + size})", remedy="give another base or max_search"
    )


def _check_search(size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidValueError(
            f"max_search: {size!r} leaves nothing to search", remedy="give 1 or more"
        )
    return size
