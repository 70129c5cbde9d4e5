"""Claims of ports by processes, for Python programs: taken, listed, given back, reclaimed.

The holder is a process, named by its identity: its own calls and its death end a claim, and
nothing else does. All of it is in the user's one registry, where environments claim as well.
"""

from __future__ import annotations

import json

from corral.decide.ports import Pool, check_pool, check_port
from corral.errors import ForeignError, HeldError, InvalidValueError
from corral.kernel import clock, identity
from corral.model.allocation import Allocation
from corral.model.environment import Claim, ClaimKind
from corral.model.process import Presence
from corral.model.tuples import NamedTuple
from corral.services import process_ports
from corral.services.calling import calling_context
from corral.store import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection
    from types import TracebackType
    from typing import Self

    from corral.kernel.sockets import HeldPort
    from corral.model.process import ProcessIdentity

PROTOCOLS = ("tcp", "udp")


class EphemeralPort(NamedTuple):
    """A port that this process has claimed, and the sockets that hold it.

    `held, port = allocate_ephemeral_port()`. A server that sets SO_REUSEADDR binds and listens
    over the held sockets; for another one call `held.release()` right before it starts. As a
    context manager it releases at the end.
    """

    held: HeldPort
    port: int

    def release(self) -> None:
        """Let go of the port and give the claim back."""
        self.held.release()
        _give_back((self.port,))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class PortRun(NamedTuple):
    """Ports in a row that this process has claimed, and the sockets that hold them.

    `held[n]` holds `ports[n]`. As a context manager it releases all at the end.
    """

    held: tuple[HeldPort, ...]
    ports: tuple[int, ...]

    def release(self) -> None:
        """Let go of the ports and give the claims back."""
        for each in self.held:
            each.release()
        _give_back(self.ports)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def allocate_ephemeral_port(
    worker_id: str = "",
    *,
    hosts: Sequence[str] | None = None,
    pool: tuple[int, int] | None = None,
) -> EphemeralPort:
    """Claim a free port for this process and hold it, on the addresses `hosts` or everywhere.

    It comes from the pool: `pool`, as (first, last) with both ends in it, or the one of the
    settings, which lies below the range from which the kernel hands out ports. The claim ends with
    the process. `worker_id` is a word for others. Raises HeldError when none is free,
    InvalidValueError for what is no pool, RegistryError when the registry cannot be written.
    """
    (held,), (port,) = allocate_port_run(1, worker_id, hosts=hosts, pool=pool)
    return EphemeralPort(held, port)


def allocate_port_run(
    count: int,
    worker_id: str = "",
    *,
    hosts: Sequence[str] | None = None,
    pool: tuple[int, int] | None = None,
) -> PortRun:
    """Like `allocate_ephemeral_port`, for `count` ports in a row: all of them or none.

    Raises InvalidValueError for a count below 1, and what `allocate_ephemeral_port` raises.
    """
    if count < 1:
        raise InvalidValueError(f"{count} ports cannot be claimed", remedy="ask for one or more")
    context = calling_context()
    chosen = context.settings.pool if pool is None else check_pool(Pool(*pool))
    worker = process_ports.check_worker(worker_id)
    held = process_ports.take_run(context.registry, chosen, count, worker, hosts)
    return PortRun(held, tuple(each.port for each in held))


def record_allocation(
    worker_id: str, port: int, *, pid: int | None = None, protocol: str = "tcp"
) -> Allocation:
    """Claim a port that was chosen elsewhere, for this process or for the process `pid`.

    `port` is 1 to 65535, `protocol` tcp or udp; nothing is held. Again for the same holder, it
    takes on the new `worker_id`. Raises HeldError when an environment or another process, which is
    not proven dead, has it: nothing is changed then. Raises ProcessGoneError or EnumerationError
    when the holder cannot be identified, InvalidValueError for what is no port or protocol.
    """
    number = check_port(port)
    worker = process_ports.check_worker(worker_id)
    recorder = identity.own_identity()
    holder = recorder if pid is None else identity.identify(pid)
    detail = "" if holder == recorder else _recorded_by(recorder)
    claim = process_ports.claim_of(
        number, worker, holder, protocol=_protocol(protocol), detail=detail
    )
    with calling_context().registry.write() as conn:
        known = claims.find(conn, claim.kind, claim.scope, claim.value)
        if known is not None:
            _refuse_living(known, holder)
            _drop(conn, known)
        claims.take(conn, claim)
    return _allocation(claim, Presence.ALIVE)


def _refuse_living(known: Claim, holder: ProcessIdentity) -> None:
    if known.holder is not None:
        same = known.holder.matches(holder)
        if same or process_ports.presence_of(known, clock.boot_id()) is Presence.GONE:
            return
    raise HeldError(
        f"port {known.value} is claimed by {_whose(known)}",
        remedy="choose another port, or let its holder release it",
        resource=known.value,
    )


def release_allocation(
    worker_id: str, port: int | None = None, *, pid: int | None = None, protocol: str = "tcp"
) -> int:
    """Give back what was claimed as `worker_id`: one port, or all; how many claims that were.

    Only the holder can do that, and who recorded the claim for it (then name the holder's `pid`).
    What a dead process left behind may be given back by anyone. Raises ForeignError when all that
    is meant belongs to others who are not proven dead: nothing is given back then.
    """
    scope, own, boot_id = _protocol(protocol), identity.own_identity(), clock.boot_id()
    value = None if port is None else str(check_port(port))
    with calling_context().registry.write() as conn:
        meant = [
            claim
            for claim in _process_claims(conn)
            if (claim.worker, claim.scope) == (worker_id, scope)
            and value in {None, claim.value}
            and (pid is None or (claim.holder is not None and claim.holder.pid == pid))
        ]
        given = [claim for claim in meant if _may_release(claim, own, boot_id)]
        if meant and not given:
            raise ForeignError(
                f"port {meant[0].value} is claimed by {_whose(meant[0])}",
                remedy="only its holder can release it",
                resource=meant[0].value,
            )
        return sum(_drop(conn, claim) for claim in given)


def _may_release(claim: Claim, own: ProcessIdentity, boot_id: str) -> bool:
    if claim.holder is not None and claim.holder.matches(own):
        return True
    if claim.detail and claim.detail == _recorded_by(own):
        return True
    return process_ports.presence_of(claim, boot_id) is Presence.GONE


def list_allocations(worker_id: str | None = None) -> tuple[Allocation, ...]:
    """Every port that a process has claimed, or those of one worker; the oldest first."""
    boot_id = clock.boot_id()
    with calling_context().registry.read() as conn:
        found = _process_claims(conn)
    return tuple(
        _allocation(claim, process_ports.presence_of(claim, boot_id))
        for claim in found
        if worker_id in {None, claim.worker}
    )


def reap_stale_allocations() -> tuple[Allocation, ...]:
    """Give back what processes had claimed that are proven dead; what that was.

    A process that cannot be looked at keeps what it has.
    """
    gone = process_ports.reclaim(calling_context().registry)
    return tuple(_allocation(claim, Presence.GONE) for claim in gone)


def _process_claims(conn: Connection) -> list[Claim]:
    return [
        claim
        for claim in claims.all_(conn)[0]
        if claim.kind is ClaimKind.PORT and claim.holder is not None
    ]


def _drop(conn: Connection, claim: Claim) -> bool:
    return claims.release(
        conn,
        claim.kind,
        claim.scope,
        claim.value,
        environment=claim.environment,
        holder=claim.holder,
    )


def _allocation(claim: Claim, presence: Presence) -> Allocation:
    holder = claim.holder
    if holder is None:
        raise AssertionError("an environment's claim is no allocation")
    port, protocol = int(claim.value), claim.scope.partition("@")[0]
    return Allocation(claim.worker, port, protocol, holder, claim.created_at, presence)


def _whose(claim: Claim) -> str:
    if claim.holder is None:
        environment = claim.environment
        return f"environment {environment}" if environment else "an entry that cannot be read"
    return f"process {claim.holder.pid} (worker {claim.worker!r})"


def _recorded_by(recorder: ProcessIdentity) -> str:
    return json.dumps({"recorded_by": identity.encode_identity(recorder)})


def _protocol(protocol: str) -> str:
    if protocol not in PROTOCOLS:
        raise InvalidValueError(f"{protocol!r} is no protocol", remedy="choose tcp or udp")
    return protocol


def _give_back(ports: Sequence[int]) -> None:
    process_ports.give_back(calling_context().registry, ports, identity.own_identity())
