"""The `ports` of a Compose service, in every syntax, as single container ports.

Source: the Compose specification, chapter Services, `ports`.
"""

from __future__ import annotations

from corral.decide.ports import HIGHEST, LOWEST
from corral.model.tuples import NamedTuple
from corral.render.interpolation import expand, split_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# A range beyond this many ports is left to the engine: nobody asks for each of them by name.
WIDEST = 64
_PROTOCOLS = frozenset({"tcp", "udp", "sctp"})


class ContainerPort(NamedTuple):
    """One port of a container that the base file publishes.

    `published`: the host port that the base file asks for, None where it leaves that to the engine.
    `expression`: the container port as written, if it holds variables (what the file says when it
    is used counts, not what it said when it was read), else "".
    """

    target: int
    protocol: str
    published: int | None
    expression: str = ""


class PortRange(NamedTuple):
    """More container ports than are dealt one by one."""

    first: int
    last: int
    protocol: str


class UnreadablePortError(ValueError):
    """An entry that is no port mapping; the message says which."""


def read_port(
    entry: Any, environ: Mapping[str, str], late: Mapping[str, str]
) -> tuple[ContainerPort, ...] | PortRange:
    """The container ports of one entry of `ports`. Raises UnreadablePortError.

    `environ`: the variables that the entry may name; `late`: those that the override may name.
    """
    if isinstance(entry, dict):
        raw, published, protocol = (
            str(entry.get(key) or default)
            for key, default in (("target", ""), ("published", ""), ("protocol", "tcp"))
        )
        container, published, protocol = (
            expand(text, environ) for text in (raw, published, protocol)
        )
        return _combined(container, published, protocol, _kept(raw, container, late))
    if isinstance(entry, bool) or not isinstance(entry, str | int):
        raise UnreadablePortError(f"{entry!r} is no port mapping")
    mapping, protocol = _protocol(expand(str(entry), environ))
    host, _, container = mapping.rpartition(":")
    # an address may stand before the host port, and IPv6 ones hold colons themselves
    published = host.rpartition(":")[2]
    expression = split_outside(split_outside(str(entry), "/")[0], ":")[-1]
    return _combined(container, published, protocol, _kept(expression, container, late))


def _kept(expression: str, container: str, late: Mapping[str, str]) -> str:
    """The expression if it holds variables and the override's reader finds the same in it."""
    return expression if "$" in expression and expand(expression, late) == container else ""


def _protocol(mapping: str) -> tuple[str, str]:
    ports, slash, protocol = mapping.partition("/")
    return ports, protocol.lower() if slash else "tcp"


def _combined(
    container: str, published: str, protocol: str, expression: str
) -> tuple[ContainerPort, ...] | PortRange:
    if protocol not in _PROTOCOLS:
        raise UnreadablePortError(f"{protocol!r} is no protocol")
    first, last = _range(container)
    if last - first >= WIDEST:
        return PortRange(first, last, protocol)
    lowest, highest = _range(published) if published else (None, None)
    targets = range(first, last + 1)
    # as many host ports as container ports: one each; else any of them (for several replicas)
    paired = lowest is not None and highest is not None and highest - lowest == last - first
    return tuple(
        ContainerPort(
            target,
            protocol,
            lowest if lowest is None or not paired else lowest + target - first,
            expression if first == last else "",
        )
        for target in targets
    )


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.strip().partition("-")
    numbers = [first, last if dash else first]
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise UnreadablePortError(f"{text!r} is no port")
    low, high = (int(number[:6]) for number in numbers)
    if not LOWEST <= low <= high <= HIGHEST:
        raise UnreadablePortError(f"{text!r} is no port from {LOWEST} to {HIGHEST}")
    return low, high
