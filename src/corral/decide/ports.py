"""Which port an environment would like. A preference, never the claim."""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOWEST, HIGHEST = 1, 65535
PRIVILEGED_BELOW = 1024


class Pool(NamedTuple):
    """The ports to deal from, both ends included."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many ports the pool has."""
        return self.last - self.first + 1


def check_port(port: object, what: str = "port") -> int:
    """The port if it is an integer from 1 to 65535, else InvalidValueError naming `what`."""
    if isinstance(port, bool) or not isinstance(port, int):
        raise InvalidValueError(
            f"{what}: {port!r} is not a port number", remedy=f"give {LOWEST} to {HIGHEST}"
        )
    if not LOWEST <= port <= HIGHEST:
        raise InvalidValueError(
            f"{what}: {port} is no valid port", remedy=f"give {LOWEST} to {HIGHEST}"
        )
    return port


def parse_port(text: str, what: str = "port") -> int:
    """A port written in decimal digits, else InvalidValueError naming `what`."""
    if not (text.isascii() and text.isdigit()):
        raise InvalidValueError(
            f"{what}: {text!r} is not a port number", remedy=f"give {LOWEST} to {HIGHEST}"
        )
    return check_port(int(text[:9]), what)


def check_pool(pool: Pool) -> Pool:
    """The pool if it is a range of valid ports from 1024 up, else InvalidValueError."""
    check_port(pool.first, "pool.first")
    check_port(pool.last, "pool.last")
    if pool.first < PRIVILEGED_BELOW or pool.last < pool.first:
        raise InvalidValueError(
            f"the port pool {pool.first}-{pool.last} is empty or reaches below {PRIVILEGED_BELOW}",
            remedy="set pool.first and pool.last so that first <= last",
        )
    return pool


def preferred_offset(repository: str, worktree: str, name: str, size: int) -> int:
    """The same offset in every process: SHA-256 over the three names, modulo `size`."""
    from hashlib import sha256  # which loads OpenSSL: only a new claim needs it

    text = f"{repository}\0{worktree}\0{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(sha256(text).digest()[:8], "big") % size


def candidates(
    pool: Pool, repository: str, worktree: str, name: str, *, count: int = 1
) -> Iterator[int]:
    """First ports of runs of `count`, the preferred one first, each once, the whole pool over."""
    places = pool.size - count + 1
    if places < 1:
        raise InvalidValueError(
            f"a run of {count} ports does not fit the pool {pool.first}-{pool.last}",
            remedy="ask for fewer ports or widen pool.first and pool.last",
        )
    start = preferred_offset(repository, worktree, name, places)
    for step in range(places):
        yield pool.first + (start + step) % places
