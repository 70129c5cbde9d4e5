"""Claim what an environment wants, all of it or nothing, in one write transaction.

A new port must be free in the registry and in the kernel; a claim that the environment has already
is kept, whatever listens on it. Called with the connection of a `registry.write()`; an error leaves
the transaction to be rolled back.
"""

from __future__ import annotations

import time

from corral.decide import naming
from corral.decide.addresses import addresses
from corral.decide.ports import candidates
from corral.errors import HeldError, InvalidValueError, UsageError
from corral.kernel import clock, identity, sockets
from corral.model.environment import Claim, ClaimKind
from corral.model.process import Presence, ProcessIdentity
from corral.model.tuples import NamedTuple
from corral.store import claims, environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from sqlite3 import Connection

    from corral.config import PortWish, Settings
    from corral.model.environment import Environment

_TRIES = 16  # names that may be taken by somebody before something is wrong


class Claimant(NamedTuple):
    """For whom a claim is made: an environment or a process (`holder`), by which worker."""

    environment: str | None
    holder: ProcessIdentity | None
    worker: str

    def claim(self, kind: ClaimKind, scope: str, value: str, name: str, detail: str = "") -> Claim:
        """A claim of this claimant's, made now."""
        return Claim(
            kind,
            scope,
            value,
            name,
            self.environment,
            self.holder,
            self.worker,
            time.time(),
            detail,
        )


class PortAsked(NamedTuple):
    """One wish, and whether its preferred number counts here (else it comes from the pool)."""

    wish: PortWish
    honoured: bool


class PortGiven(NamedTuple):
    """What became of a wish: the number, whether it is new, and words on what was not as wished."""

    name: str
    number: int
    new: bool
    words: str = ""


def take_ports(
    conn: Connection,
    claimant: Claimant,
    asked: Iterable[PortAsked],
    settings: Settings,
    who: tuple[str, str],
    address: str | None = None,
) -> tuple[PortGiven, ...]:
    """A port for each wish. `who` are the repository's and the worktree's names.

    With an `address` of its own the environment keeps every preferred number. Raises HeldError
    when the pool has no free port left; then nothing may be committed.
    """
    held = {}
    if claimant.environment is not None:
        own = claims.of_environment(conn, claimant.environment)
        held = {claim.name: claim for claim in own if claim.kind is ClaimKind.PORT}
    given = []
    for each in asked:
        known = held.get(each.wish.name)
        if known is not None:
            given.append(_kept(each, known))
            continue
        search = Search(conn, claimant, each.wish.protocol, address)
        given.append(_new(search, each, settings, who))
    return tuple(given)


def _kept(asked: PortAsked, claim: Claim) -> PortGiven:
    wish, number = asked.wish, int(claim.value)
    if claim.scope.partition("@")[0] != wish.protocol:
        words = f"{wish.name} keeps its {claim.scope} claim of {number}"
    elif asked.honoured and wish.preferred not in {None, number}:
        words = f"{wish.name} keeps {number}, which it has already"
    else:
        return PortGiven(wish.name, number, new=False)
    remedy = f"corral port release {wish.name}, then ask for {wish.preferred} again"
    return PortGiven(wish.name, number, new=False, words=f"{words}; {remedy}")


def _new(search: Search, asked: PortAsked, settings: Settings, who: tuple[str, str]) -> PortGiven:
    wish, words = asked.wish, ""
    if wish.preferred is not None and asked.honoured:
        reason = search.obstacle(wish.preferred)
        if not reason:
            return search.give(wish.name, wish.preferred)
        words = f"{wish.preferred} {reason}"
    for number in candidates(settings.pool, *who, wish.name):
        if not search.obstacle(number):
            given = search.give(wish.name, number)
            return given._replace(words=f"{wish.name} gets {number}: {words}" if words else "")
    raise no_port_left(settings, wish.name)


class Search:
    """The search for ports of one protocol: which numbers are taken, and by whom."""

    def __init__(
        self, conn: Connection, claimant: Claimant, protocol: str, address: str | None
    ) -> None:
        self._conn = conn
        self._claimant = claimant
        self._protocol = protocol
        self._address = address
        self._scope = f"{protocol}@{address}" if address else protocol
        self._taken = claims.taken_values(conn, ClaimKind.PORT, self._scope)

    def obstacle(self, number: int) -> str:
        """Why the number cannot be had, "" if it can."""
        if str(number) in self._taken and not self._freed(number):
            return self._claimed_by(number)
        try:
            free = sockets.port_is_free(number, protocol=self._protocol, address=self._address)
        except InvalidValueError as error:
            # A port below 1024 that this user may not bind.
            return f"cannot be had: {error.message}"
        return "" if free else "is in use by a process that is not corral's"

    def _claimed_by(self, number: int) -> str:
        claim = claims.find(self._conn, ClaimKind.PORT, self._scope, str(number))
        if claim is None:
            return "is claimed already"
        if claim.environment is None:
            return f"is claimed by process {claim.holder.pid if claim.holder else '?'}"
        if claim.environment == self._claimant.environment:
            return f"is claimed already by this environment, as {claim.name}"
        owner = environments.find(self._conn, claim.environment)
        where = owner.place.path if owner is not None else claim.environment
        return f"is claimed already by {where}, as {claim.name}"

    def give(self, name: str, number: int) -> PortGiven:
        """Claim a number that has no obstacle."""
        claim = self._claimant.claim(ClaimKind.PORT, self._scope, str(number), name)
        if not claims.take(self._conn, claim):
            raise HeldError(f"port {number} was claimed by somebody else", remedy="try again")
        self._taken.add(str(number))
        return PortGiven(name, number, new=True)

    def _freed(self, number: int) -> bool:
        """Whether the claim was that of a process which is proven dead; then it is given back."""
        claim = claims.find(self._conn, ClaimKind.PORT, self._scope, str(number))
        if claim is None:
            return True
        if claim.holder is None or not is_dead(claim.holder):
            return False
        release(self._conn, claim)
        self._taken.discard(str(number))
        return True


def no_port_left(settings: Settings, name: str) -> HeldError:
    """The error when the whole pool is claimed or in use."""
    pool = settings.pool
    return HeldError(
        f"no port of the pool {pool.first}-{pool.last} is free for {name}",
        remedy="widen pool.first and pool.last, or release claims: corral port list --all, "
        "corral cleanup",
    )


def take_run(
    conn: Connection,
    claimant: Claimant,
    name: str,
    count: int,
    settings: Settings,
    who: tuple[str, str],
) -> tuple[PortGiven, ...]:
    """`count` ports in a row, named `name`, `name-2`, ...; HeldError if the pool has no such run.

    Where the claimant has all of these names in a row already, they are kept.
    """
    names = [name if place == 1 else f"{name}-{place}" for place in range(1, count + 1)]
    kept = _run_kept(conn, claimant, names)
    if kept:
        return kept
    search = Search(conn, claimant, "tcp", None)
    for first in candidates(settings.pool, *who, name, count=count):
        if not any(search.obstacle(first + step) for step in range(count)):
            return tuple(search.give(each, first + step) for step, each in enumerate(names))
    raise no_port_left(settings, f"{count} ports in a row for {name}")


def _run_kept(conn: Connection, claimant: Claimant, names: list[str]) -> tuple[PortGiven, ...]:
    if claimant.environment is None:
        return ()
    own = claims.of_environment(conn, claimant.environment)
    held = {c.name: int(c.value) for c in own if c.kind is ClaimKind.PORT}
    found = [held.get(name) for name in names]
    if None in found:
        if any(number is not None for number in found):
            taken = next(n for n, number in zip(names, found, strict=True) if number is not None)
            raise HeldError(
                f"this environment has a port {taken} already, and not the whole run",
                remedy=f"release it first: corral port release {taken}",
            )
        return ()
    return tuple(PortGiven(n, held[n], new=False) for n in names)


def take_address(conn: Connection, claimant: Claimant, who: tuple[str, str]) -> str:
    """The environment's own loopback address. UsageError where there is only one (not Linux)."""
    import sys

    if sys.platform != "linux":
        raise UsageError(
            "--address: this system has one loopback address only",
            remedy="use ports of the pool instead",
        )
    for claim in claims.of_environment(conn, claimant.environment or ""):
        if claim.kind is ClaimKind.ADDRESS:
            return claim.value
    for address in addresses(*who):
        if claims.take(conn, claimant.claim(ClaimKind.ADDRESS, "ipv4", address, "address")):
            return address
    raise HeldError("every loopback address is claimed", remedy="corral cleanup gives some back")


def take_name(conn: Connection, environment: Environment, claimant: Claimant, scope: str) -> str:
    """The environment's name in a place: "compose", "cluster", ...; the same at every call."""
    for claim in claims.of_environment(conn, environment.id):
        if claim.kind is ClaimKind.NAME and claim.scope == scope:
            return claim.value
    rule = {"cluster": naming.CLUSTER, "compose": naming.COMPOSE}.get(scope, naming.DOCKER)
    for name in names_for(environment, rule):
        if claims.take(conn, claimant.claim(ClaimKind.NAME, scope, name, scope)):
            return name
    raise HeldError(f"no name is left for {scope}", remedy="report this: names should not collide")


def names_for(environment: Environment, rule: naming.NameRule) -> Iterator[str]:
    """Names for an environment, the first one first; a further one only if that is taken."""
    place = environment.place
    readable = f"{place.repository}-{place.worktree}" if place.worktree else place.repository
    for turn in range(_TRIES):
        full = environment.id if turn == 0 else f"{environment.id}#{turn}"
        yield naming.claimed_name(environment.namespace, readable, full, rule)


def is_dead(holder: ProcessIdentity) -> bool:
    """Whether a claim's holder is proven dead; a holder that cannot be looked at is not."""
    return identity.presence(holder, boot_id=clock.boot_id())[0] is Presence.GONE


def release(conn: Connection, claim: Claim) -> None:
    """Give back exactly this claim."""
    claims.release(
        conn,
        claim.kind,
        claim.scope,
        claim.value,
        environment=claim.environment,
        holder=claim.holder,
    )
