"""Whether a started server is ready: its port listens, and the listener is its own."""

from __future__ import annotations

from corral.model.tuples import NamedTuple

_ANY_V4, _ANY_V6 = "0.0.0.0", "::"  # noqa: S104 (compared with, never bound)
_LOCAL_V4, _LOCAL_V6 = "127.0.0.1", "::1"


class Wanted(NamedTuple):
    """A port that must listen before a server counts as ready."""

    name: str
    number: int


class Heard(NamedTuple):
    """A listening TCP socket that was seen; `ours` when it belongs to what was started."""

    address: str
    port: int
    inode: int
    ours: bool


class Seen(NamedTuple):
    """What one look shows of the wanted ports.

    `silent`: those on which nothing listens. `foreign`: other people's listeners on them.
    `elsewhere`: ours on other ports. `detours`: (wanted, address) of those that only answer at
    another address than the one that is handed out.
    """

    silent: tuple[Wanted, ...]
    foreign: tuple[Heard, ...]
    elsewhere: tuple[Heard, ...]
    detours: tuple[tuple[Wanted, str], ...]

    @property
    def ready(self) -> bool:
        """Whether every wanted port listens and is ours."""
        return not self.silent and not self.foreign


def sort_out(wanted: tuple[Wanted, ...], host: str, heard: tuple[Heard, ...]) -> Seen:
    """What the listeners that were heard mean for the wanted ports at the address `host`."""
    silent, foreign, detours = [], [], []
    for each in wanted:
        there = [h for h in heard if h.port == each.number and concerns(h.address, host)]
        mine = [h for h in there if h.ours]
        if not there:
            silent.append(each)
        elif not mine:
            foreign += there
        elif not any(reaches(h.address, host) for h in mine):
            detours.append((each, mine[0].address))
    numbers = {each.number for each in wanted}
    elsewhere = tuple(h for h in heard if h.ours and h.port not in numbers)
    return Seen(tuple(silent), tuple(foreign), elsewhere, tuple(detours))


def reaches(address: str, host: str) -> bool:
    """Whether who connects to `host` ends at a listener on `address`."""
    return address in {host, _ANY_V4, _ANY_V6}


def concerns(address: str, host: str) -> bool:
    """Whether a listener on `address` serves, or takes, what `host` names on this machine.

    A server that was told "localhost" may listen on ::1 alone.
    """
    return reaches(address, host) or (host == _LOCAL_V4 and address == _LOCAL_V6)


def at(address: str, port: int) -> str:
    """An address and a port as one writes them in a URL."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def describe_socket(heard: Heard) -> str:
    """Where a listener listens."""
    return at(heard.address, heard.port)


def describe_port(wanted: Wanted) -> str:
    """A port with its name."""
    return f"{wanted.number} ({wanted.name})"
