"""Ports for a process, out of the pool: claimed first, then held, so that there is no gap.

A new claim must be free in the registry and in the kernel. The registry decides between workers,
and only who has its answer looks at the kernel: a probe of a port that is another's could get in
the way of the server that is just about to bind there.
"""

from __future__ import annotations

import os
import time
from itertools import count

from corral.decide.ports import candidates
from corral.errors import HeldError, InvalidValueError
from corral.kernel import clock, identity, sockets
from corral.model.environment import Claim, ClaimKind
from corral.model.process import Presence
from corral.store import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection

    from corral.decide.ports import Pool
    from corral.kernel.sockets import HeldPort
    from corral.model.process import ProcessIdentity
    from corral.store.registry import Registry

PROTOCOL = "tcp"
_numbers = count(1)
_BLIND_TRIES = 8  # numbers that are tried before it pays to ask for all that are taken


def take_run(
    registry: Registry, pool: Pool, length: int, worker: str, addresses: Sequence[str] | None
) -> tuple[HeldPort, ...]:
    """`length` free ports in a row, claimed for this process and held on the `addresses`.

    Claims of processes that are proven dead are reclaimed once nothing else is left. Raises
    HeldError when the pool has no such run, InvalidValueError when it never could.
    """
    own = identity.own_identity()
    busy: set[int] = set()
    for last_chance in (False, True):
        while (first := _claim_run(registry, pool, length, worker, own, busy)) is not None:
            run = range(first, first + length)
            held = None
            try:
                held = _hold_all(run, addresses, busy)
            finally:
                if held is None:
                    give_back(registry, run, own)
            if held is not None:
                return held
        if last_chance or not reclaim(registry):
            break
    what = f"{length} ports in a row are" if length > 1 else "port is"
    raise HeldError(
        f"no {what} free in the pool {pool.first}-{pool.last}",
        remedy="widen pool.first and pool.last, or see who has them: corral port list --all",
    )


def _claim_run(
    registry: Registry,
    pool: Pool,
    length: int,
    worker: str,
    holder: ProcessIdentity,
    busy: set[int],
) -> int | None:
    """The first port of a run that is claimed now; None when all are claimed or `busy`."""
    # Where a process begins to look is random: those that claim at once do not meet.
    firsts = candidates(pool, os.urandom(8).hex(), "", "", count=length)
    with registry.write(durable=False) as conn:
        taken: set[str] = set()
        for tried, first in enumerate(firsts):
            run = range(first, first + length)
            if tried == _BLIND_TRIES:
                taken = claims.taken_values(conn, ClaimKind.PORT, PROTOCOL)
            if busy.isdisjoint(run) and _take_all(conn, run, taken, worker, holder):
                return first
    return None


def _take_all(
    conn: Connection,
    run: Sequence[int],
    taken: set[str],
    worker: str,
    holder: ProcessIdentity,
) -> bool:
    """Claim the whole run, or nothing of it. `taken`: numbers that are known to be claimed."""
    if any(str(port) in taken for port in run):
        return False
    # A name of its own for each claim, or one of this very process would seem to be a new one.
    name = str(next(_numbers))
    for place, port in enumerate(run):
        if not claims.take(conn, claim_of(port, worker, holder, name=name)):
            for earlier in run[:place]:
                claims.release(conn, ClaimKind.PORT, PROTOCOL, str(earlier), holder=holder)
            return False
    return True


def claim_of(
    port: int,
    worker: str,
    holder: ProcessIdentity,
    *,
    name: str = "",
    protocol: str = PROTOCOL,
    detail: str = "",
) -> Claim:
    """The claim of a port by a process, made now."""
    return Claim(
        ClaimKind.PORT, protocol, str(port), name, None, holder, worker, time.time(), detail
    )


def _hold_all(
    run: Iterable[int], addresses: Sequence[str] | None, busy: set[int]
) -> tuple[HeldPort, ...] | None:
    """Hold every port of a run; None, and `busy` knows it, when one of them is in use."""
    held: list[HeldPort] = []
    for port in run:
        found = _hold(port, addresses)
        if found is None:
            busy.add(port)
            for earlier in held:
                earlier.release()
            return None
        held.append(found)
    return tuple(held)


def _hold(port: int, addresses: Sequence[str] | None) -> HeldPort | None:
    """The port, held, if nobody has it; everywhere unless `addresses` says less."""
    try:
        if addresses is None:
            return sockets.HeldPort(port, sockets.WILDCARDS, free=True)
    except HeldError:
        # It may only linger of a server that is gone: the look below can tell.
        addresses = sockets.WILDCARDS
    if not sockets.port_is_free(port, protocol=PROTOCOL):
        return None
    try:
        return sockets.HeldPort(port, addresses)
    except HeldError:
        # A stranger was quicker than the look.
        return None


def give_back(registry: Registry, ports: Iterable[int], holder: ProcessIdentity) -> int:
    """Give back the claims of a process to these ports; how many there were."""
    with registry.write(durable=False) as conn:
        return sum(
            claims.release(conn, ClaimKind.PORT, PROTOCOL, str(port), holder=holder)
            for port in ports
        )


def reclaim(registry: Registry) -> tuple[Claim, ...]:
    """Give back what processes held that are proven dead; these claims.

    A holder that cannot be looked at keeps its claims, and so does one that took over a claim
    while it was looked at another.
    """
    with registry.read() as conn:
        found = [c for c in claims.all_(conn)[0] if c.holder is not None]
    boot_id = clock.boot_id()
    dead = [c for c in found if presence_of(c, boot_id) is Presence.GONE]
    if not dead:
        return ()
    with registry.write() as conn:
        return tuple(
            c for c in dead if claims.release(conn, c.kind, c.scope, c.value, holder=c.holder)
        )


def presence_of(claim: Claim, boot_id: str) -> Presence:
    """What is proven of the process that holds a claim."""
    if claim.holder is None:
        return Presence.UNKNOWN
    return identity.presence(claim.holder, boot_id=boot_id)[0]


def check_worker(worker_id: str) -> str:
    """The worker's id if it can be recorded. It is data: any characters, at most 4096 of them."""
    if not isinstance(worker_id, str):
        raise InvalidValueError(f"a worker id is text, not {worker_id!r}")
    if len(worker_id) > 4096:  # noqa: PLR2004 (said above)
        raise InvalidValueError("the worker id is longer than 4096 characters")
    return worker_id
