"""Hold the ports of a start, so that nobody else gets them, and hand their sockets over.

A held port is bound on every address that a server may use, and does not listen: strangers are
kept out, and a server with SO_REUSEADDR binds over it. A port that is handed over listens already,
as sd_listen_fds(3) promises, so that whoever connects early waits instead of being refused.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

from corral.decide.ready import Wanted, concerns, describe_port
from corral.errors import HeldError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

    from corral.kernel.sockets import HeldPort
    from corral.services.context import Context
    from corral.services.launching import Given, Launch

_LOOPBACK = "127.0.0.1"
_INFO_BYTES = 32  # of struct tcp_info, as far as it is read here


class Holding(NamedTuple):
    """What is held for one start.

    `handed`: (name, socket) of the listening sockets that the command inherits. `accepts` tells
    whether the command takes connections from them; None where there are none.
    """

    held: tuple[HeldPort, ...] = ()
    handed: tuple[tuple[str, socket.socket], ...] = ()
    accepts: Callable[[], bool] | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        """The numbers that are held without listening."""
        handed = {own.getsockname()[1] for _, own in self.handed}
        return tuple(port.port for port in self.held if port.port not in handed)

    @property
    def inherited(self) -> tuple[tuple[str, int], ...]:
        """The name and descriptor of each socket that the command inherits."""
        return tuple((name, own.fileno()) for name, own in self.handed)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Every descriptor that keeps a port: as long as one is open, the port is held."""
        holders = (port.fileno(a) for port in self.held for a in port.addresses)
        return (*holders, *(fd for _, fd in self.inherited))


@contextmanager
def hold(context: Context, launch: Launch) -> Iterator[Holding]:
    """Hold the ports of a launch, each in its own way, and let go at the end.

    A port on which the environment's own server listens already needs no holding. Raises
    HeldError, naming both, when anybody else has one of them, InvalidValueError for a port that
    this user may not have.
    """
    ports = [port for port in launch.ports if port.protocol == "tcp"]
    served = _served_by_ourselves(context, launch, ports)
    held: list[HeldPort] = []
    handed: list[tuple[str, socket.socket]] = []
    try:
        for port in ports:
            if port.handoff != "release" and port.number not in served:
                _take(port, launch.host, held, handed)
        yield Holding(tuple(held), tuple(handed), _knocking([own for _, own in handed]))
    finally:
        for each in held:
            each.release()
        for _, own in handed:
            own.close()


def _take(
    port: Given, host: str, held: list[HeldPort], handed: list[tuple[str, socket.socket]]
) -> None:
    """Hold one port on every address that a server may use, or listen on the one that counts."""
    from corral.kernel.sockets import EVERYWHERE, HeldPort

    addresses = EVERYWHERE if host == _LOOPBACK else (host,)
    if port.handoff == "hold":
        held.append(HeldPort(port.number, addresses))
        return
    import socket

    held.append(HeldPort(port.number, [a for a in addresses if a != host]))
    try:
        handed.append((port.name, socket.create_server((host, port.number))))
    except OSError as error:  # taken between two looks, or without the right to have it
        words = describe_port(Wanted(port.name, port.number))
        raise HeldError(
            f"port {words} cannot be listened on: {error.strerror}",
            remedy="end what has it, or claim another port",
        ) from error


def _served_by_ourselves(
    context: Context, launch: Launch, ports: Sequence[Given]
) -> frozenset[int]:
    """The ports on which this environment itself listens already; HeldError for anybody else."""
    if not ports:
        return frozenset()
    from corral.kernel.sockets import listeners

    numbers = {port.number: port for port in ports}
    found = [
        one for one in listeners() if one.port in numbers and concerns(one.address, launch.host)
    ]
    if not found:
        return frozenset()
    ours = _own_sockets(context, launch.environment.id)
    for one in found:
        port = numbers[one.port]
        own = one.inode in ours or (launch.also_ours is not None and launch.also_ours(one.port))
        if not own or port.handoff == "fd":
            raise _taken(port, one.inode, ours=own)
    return frozenset(one.port for one in found)


def _taken(port: Given, inode: int, *, ours: bool) -> HeldError:
    from corral.services.readiness import whose

    words = describe_port(Wanted(port.name, port.number))
    who = whose(inode)
    if ours:
        return HeldError(
            f"port {words} cannot be handed over: {who} of this environment listens on it",
            remedy="stop that one first: corral status, corral stop NAME",
        )
    return HeldError(
        f"port {words} is taken by {who}, which is not of this environment; nothing was started",
        remedy=f"end it, or give the port back and claim another: corral port release {port.name}",
    )


def _own_sockets(context: Context, environment: str) -> frozenset[int]:
    """The sockets of what is recorded in the environment, and of all below it."""
    from corral.kernel import identity, procfs
    from corral.model.record import RecordState
    from corral.model.resource import Kind
    from corral.services.readiness import tree_sockets
    from corral.store import records

    with context.registry.read() as conn:
        known = records.of_environment(conn, environment)
    table = procfs.snapshot()
    pids = [
        row.pid
        for record in known
        if record.kind is Kind.PROCESS and record.state is RecordState.LIVE
        if (row := table.find(identity.decode_identity(record.identity))) is not None
    ]
    return tree_sockets(table, pids)


def _knocking(handed: Sequence[socket.socket]) -> Callable[[], bool] | None:
    """Asks whether all the sockets that were handed over are being accepted from."""
    if not handed or sys.platform != "linux":
        return None
    knocks = [_Knock(own) for own in handed]
    return lambda: all(knock.answered() for knock in knocks)


class _Knock:
    """One connection to a listening socket of ours, to be accepted by the command that has it too.

    The kernel makes connections before anybody accepts them, and counts those that wait.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._connection: socket.socket | None = None
        self._answered = False

    def answered(self) -> bool:
        """Whether nothing waits to be accepted, this connection included."""
        import socket

        if self._answered:
            return True
        if self._connection is None:
            place = self._listening.getsockname()[:2]
            self._connection = socket.create_connection(place, timeout=1)
        info = self._listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        if _waiting(info) == 0:
            self._answered = True
            self._connection.close()
        return self._answered


def _waiting(info: bytes) -> int:
    """Connections that wait to be accepted: tcpi_unacked of struct tcp_info (linux/tcp.h)."""
    return int.from_bytes(info[24:28], sys.byteorder)
