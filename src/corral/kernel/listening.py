"""Who listens on which TCP port, and which process has that socket (proc_pid_net(5))."""

from __future__ import annotations

import os
import sys

from corral.errors import EnumerationError
from corral.kernel._rawfile import read_all
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTEN = b"0A"

# TIME_WAIT, FIN_WAIT1, FIN_WAIT2, LAST_ACK, CLOSING: closed from this side, and no one's any more.
_LINGERING = frozenset({b"06", b"04", b"05", b"09", b"0B"})

_MAPPED = bytes(10) + b"\xff\xff"  # how an IPv6 socket writes an IPv4 address


class Listener(NamedTuple):
    """A listening TCP socket; `inode` is what its owners' descriptors name."""

    address: str
    port: int
    inode: int


def listeners() -> tuple[Listener, ...]:
    """Every listening TCP socket of this network namespace, IPv4 first.

    A socket for both families has the address "::". Off Linux only those of processes that this
    user may look into. Raises EnumerationError.
    """
    if sys.platform != "linux":
        from corral.kernel import _psutil_sockets

        return _psutil_sockets.listeners()
    from corral.kernel import _netlink

    try:
        return tuple(Listener(_text(raw), port, inode) for raw, port, inode in _netlink.listening())
    except OSError:
        # No sock_diag in this kernel or sandbox: the table in /proc says the same, more slowly.
        return tuple(
            Listener(decode_address(host), port, inode)
            for host, port, state, inode in _sockets()
            if state == _LISTEN
        )


def lingering_ports() -> frozenset[int]:
    """Local ports of connections that are closed and not forgotten yet (Linux; else none).

    Raises EnumerationError.
    """
    if sys.platform != "linux":
        return frozenset()
    return frozenset(port for _, port, state, _ in _sockets() if state in _LINGERING)


def socket_inodes(pid: int) -> frozenset[int]:
    """The inodes of all sockets that a process has open; none if it has ended.

    Raises EnumerationError if this user may not look into it.
    """
    if sys.platform != "linux":
        from corral.kernel import _psutil_sockets

        return _psutil_sockets.socket_inodes(pid)
    directory = f"/proc/{pid}/fd"
    try:
        return frozenset(_inodes(directory))
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
    except OSError as error:  # EACCES above all
        raise EnumerationError(
            f"the sockets of process {pid} cannot be read: {error.strerror}",
            backend="process",
            resource=str(pid),
        ) from error


def parse_sockets(table: bytes) -> Iterator[tuple[bytes, int, bytes, int]]:
    """Address (as written), port, state and inode of each line of /proc/net/tcp or tcp6.

    Raises EnumerationError for a line that is not understood.
    """
    for line in table.splitlines()[1:]:
        fields = line.split()
        try:
            host, _, port = fields[1].partition(b":")
            yield host, int(port, 16), fields[3], int(fields[9])
        except (IndexError, ValueError) as error:
            raise EnumerationError(
                f"a line of the socket table is not understood: {line!r}", backend="process"
            ) from error


def decode_address(text: bytes) -> str:
    """An address as the socket table writes it: 32-bit words in this machine's byte order.

    An IPv4 address within IPv6 comes out as IPv4.
    """
    raw = bytes.fromhex(text.decode("ascii"))
    if sys.byteorder == "little":
        raw = b"".join(raw[n : n + 4][::-1] for n in range(0, len(raw), 4))
    return _text(raw)


def _text(raw: bytes) -> str:
    """An address of 4 or 16 bytes as text; an IPv4 address within IPv6 comes out as IPv4."""
    raw = raw.removeprefix(_MAPPED)
    if len(raw) == len(_MAPPED) + 4:
        # the module below `socket`, which takes a twentieth of its time to import
        from _socket import AF_INET6, inet_ntop

        return inet_ntop(AF_INET6, raw)
    return ".".join(map(str, raw))


def _sockets() -> Iterator[tuple[bytes, int, bytes, int]]:
    for name in ("tcp", "tcp6"):
        try:
            table = read_all(f"/proc/net/{name}")
        except FileNotFoundError as error:
            if name == "tcp6" and os.path.exists("/proc/net/tcp"):
                return  # a machine without IPv6
            raise _failed(name, error) from error
        except OSError as error:
            raise _failed(name, error) from error
        yield from parse_sockets(table)


def _inodes(directory: str) -> Iterator[int]:
    for name in os.listdir(directory):
        try:
            target = os.readlink(f"{directory}/{name}")
        except FileNotFoundError:
            continue  # closed since it was listed
        if target.startswith("socket:["):
            yield int(target[len("socket:[") : -1])


def _failed(name: str, error: OSError) -> EnumerationError:
    return EnumerationError(
        f"/proc/net/{name} cannot be read: {error.strerror}",
        backend="process",
        remedy="mount /proc",
    )
