"""Ports: whether one is free, and holding one until its server listens (socket(7), ip(7))."""

from __future__ import annotations

import errno
import sys

from corral.errors import EnumerationError, HeldError, InvalidValueError
from corral.kernel._rawfile import read_all
from corral.kernel.listening import Listener, lingering_ports, listeners, socket_inodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

__all__ = [
    "EVERYWHERE",
    "WILDCARDS",
    "HeldPort",
    "Listener",
    "ephemeral_range",
    "listeners",
    "port_is_free",
    "socket_inodes",
]

EVERYWHERE = ("127.0.0.1", "0.0.0.0", "::1", "::")  # noqa: S104 (held and probed, never served)
"""What a server may mean by "localhost" or "all": loopback and wildcard of both families."""

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 (as above)
"""All addresses of both families: whoever has the port on one of them has it here as well."""

_UNUSED = "127.255.255.254"
_HIGHEST = 65535
_LINUX_RANGE = (32768, 60999)
_OTHER_RANGE = (49152, 65535)

# The machine, or this address family of it, has no such address.
_NO_SUCH_ADDRESS = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


def ephemeral_range() -> tuple[int, int]:
    """The first and last port that the kernel deals to those who ask for any free one."""
    if sys.platform != "linux":
        return _OTHER_RANGE  # as registered for dynamic ports, and the default of macOS and BSD
    try:
        first, last = read_all("/proc/sys/net/ipv4/ip_local_port_range").split()
    except (OSError, ValueError):  # hidden: a container's /proc/sys may be
        return _LINUX_RANGE
    return int(first), int(last)


def port_is_free(port: int, *, protocol: str = "tcp", address: str | None = None) -> bool:
    """Whether nobody has the port, not even held and without listening.

    Looks on loopback and wildcard of both families; with `address` only there, where a server on
    the wildcard shows as well. Connections that a server left behind do not count. Raises
    InvalidValueError for what is no port, protocol or address of this machine, and for a port that
    this user may not bind; EnumerationError when it cannot be told.
    """
    import socket

    _check(port)
    kinds = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
    if protocol not in kinds:
        raise InvalidValueError(f"{protocol!r} is no protocol: tcp or udp")
    if address is not None:
        return _is_free(kinds[protocol], address, port, required=True)
    return all(_is_free(kinds[protocol], one, port, required=False) for one in EVERYWHERE)


class HeldPort:
    """A TCP port kept from strangers: bound on each address, and not listening.

    A server that sets SO_REUSEADDR binds and listens over it; bind(0) and connect() of others
    never get it. Only on Linux: elsewhere it would keep the server out too, so nothing is held.
    """

    def __init__(
        self, port: int, addresses: Sequence[str] = EVERYWHERE, *, free: bool = False
    ) -> None:
        """Hold on all addresses or none; those that the machine lacks (IPv6) are passed over.

        Raises HeldError when somebody listens there, or with `free` when anybody has the port in
        any way, even held or lingering; InvalidValueError when this user may not have the port,
        EnumerationError when it cannot be told.
        """
        self.port = _check(port)
        self._sockets: dict[str, socket.socket] = {}
        try:
            for address in addresses if free or sys.platform == "linux" else ():
                self._hold(address, free=free)
        except BaseException:
            self.release()
            raise
        if sys.platform != "linux":
            self.release()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses on which it is held."""
        return tuple(self._sockets)

    def __repr__(self) -> str:
        return f"HeldPort({self.port}, {', '.join(self.addresses) or 'not held'})"

    def fileno(self, address: str) -> int:
        """The descriptor of the socket on one of its `addresses`, for whoever is to listen."""
        return self._sockets[address].fileno()

    def release(self) -> None:
        """Let the port go; servers that listen over it are not touched."""
        while self._sockets:
            self._sockets.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def _hold(self, address: str, *, free: bool) -> None:
        import socket

        if address in self._sockets:
            return
        try:
            held = _bound(socket.SOCK_STREAM, address, self.port, reuse=not free)
            # Bound without sharing, so nobody had it; from now on it is shared with its server.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        except OSError as error:
            if error.errno in _NO_SUCH_ADDRESS and address in EVERYWHERE:
                return
            if error.errno == errno.EADDRINUSE:
                raise HeldError(
                    f"port {self.port} on {address} is in use",
                    remedy="end what listens there, or claim another port",
                    resource=str(self.port),
                ) from error
            raise _unusable(address, self.port, error) from error
        self._sockets[address] = held


def _check(port: int) -> int:
    if not 0 < port <= _HIGHEST:
        raise InvalidValueError(f"{port} is no port: 1 to {_HIGHEST}", resource=str(port))
    return port


def _is_free(kind: int, address: str, port: int, *, required: bool) -> bool:
    try:
        _bound(kind, address, port, reuse=False).close()
    except OSError as error:
        if error.errno in _NO_SUCH_ADDRESS and not required:
            return True  # nobody can have it there
        if error.errno != errno.EADDRINUSE:
            raise _unusable(address, port, error) from error
        return _only_lingers(kind, address, port)
    return True


def _only_lingers(kind: int, address: str, port: int) -> bool:
    """Whether a port that cannot be bound is only kept by connections of a server that is gone.

    They let a server with SO_REUSEADDR pass, but so does a port that is held without listening.
    Unlike that one they can be seen, and are on addresses that were used: a port that is held
    everywhere cannot be bound on an address that nobody uses either.
    """
    import socket

    if kind != socket.SOCK_STREAM or port not in lingering_ports():
        return False
    try:
        _bound(kind, address, port, reuse=True).close()
        _bound(kind, _UNUSED, port, reuse=False).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise _unusable(address, port, error) from error
    return True


def _bound(kind: int, address: str, port: int, *, reuse: bool) -> socket.socket:
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(family, address)  # a name would be looked up in the network
    except OSError as error:
        raise InvalidValueError(f"{address!r} is no IP address") from error
    made = socket.socket(family, kind)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if reuse:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
    except BaseException:
        made.close()
        raise
    return made


def _unusable(address: str, port: int, error: OSError) -> InvalidValueError | EnumerationError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return InvalidValueError(
            f"port {port} may not be bound by this user",
            remedy="choose one from 1024 up",
            resource=str(port),
        )
    if error.errno in _NO_SUCH_ADDRESS:
        return InvalidValueError(f"{address} is no address of this machine")
    return EnumerationError(
        f"port {port} on {address} cannot be probed: {error.strerror}", backend="process"
    )
