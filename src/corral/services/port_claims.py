"""Claim, release and list ports one by one, for an environment or for a process."""

from __future__ import annotations

import os

from corral.decide.ports import candidates
from corral.decide.spelling import did_you_mean
from corral.errors import ForeignError, NotFoundError, UsageError
from corral.kernel import identity
from corral.model.environment import ClaimKind
from corral.model.tuples import NamedTuple
from corral.services import claiming, environments, owners
from corral.services.claiming import Claimant, PortAsked, take_ports, take_run
from corral.services.places import locate
from corral.store import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

    from corral.config import PortWish
    from corral.model.environment import Claim
    from corral.model.process import ProcessIdentity
    from corral.services.claiming import PortGiven
    from corral.services.context import Context


class Claimed(NamedTuple):
    """What was claimed, and for whom: an environment's id, or a process's pid."""

    ports: tuple[PortGiven, ...]
    environment: str | None
    holder: int | None


def claim(
    context: Context, wishes: Sequence[PortWish], *, count: int | None, holder: int | None
) -> Claimed:
    """Claim one port for each wish, or a run of `count` ports named after the first.

    `holder` is the pid of the process that the claim lives as long as; None claims for the
    environment. Raises UsageError, HeldError when there is no free port: nothing is claimed then.
    """
    settings = context.settings
    # a run that the pool can never hold is found before anything is written
    next(candidates(settings.pool, "", "", "", count=count or 1))
    claimant, who = _claimant(context, holder)
    with context.registry.write() as conn:
        if count is not None:
            given = take_run(conn, claimant, wishes[0].name, count, settings, who)
        else:
            asked = [_asked(context, wish) for wish in wishes]
            given = take_ports(conn, claimant, asked, settings, who)
    return Claimed(given, claimant.environment, holder)


def _asked(context: Context, wish: PortWish) -> PortAsked:
    configured = context.settings.port(wish.name)
    if wish.preferred is not None:
        return PortAsked(configured._replace(preferred=wish.preferred), honoured=True)
    return PortAsked(configured, locate(context.directory).is_main)


def _claimant(context: Context, holder: int | None) -> tuple[Claimant, tuple[str, str]]:
    if holder is None:
        environment = environments.register(context)
        acting = owners.ensure_acting(context, environment)
        place = environment.place
        return Claimant(environment.id, None, acting.owner), (place.repository, place.worktree)
    place = locate(context.directory)
    found = owners.acting(context, environments.find(context))
    worker = found.owner if found is not None else ""
    return Claimant(None, _identified(holder), worker), (place.repository, place.worktree)


def _identified(pid: int) -> ProcessIdentity:
    try:
        return identity.identify(pid)
    except identity.ProcessGoneError as error:
        raise UsageError(
            f"--holder {pid}: there is no such process", remedy="name a process that lives"
        ) from error


def release(context: Context, wanted: Sequence[str], *, holder: int | None) -> tuple[Claim, ...]:
    """Give ports back, by name or number (none named: all that the process holds).

    Raises NotFoundError for a port that is not claimed, ForeignError for one that belongs to
    another live holder: nothing is given back then.
    """
    environment = environments.find(context)
    acting = owners.acting(context, environment)
    above = {(row.pid, row.start_ticks) for row in owners.ancestors(context.pid)} if holder else ()
    with context.registry.write() as conn:
        if holder is None:
            own = claims.of_environment(conn, environment.id) if environment is not None else []
        else:
            own = _of_pid(conn, holder)
        chosen = _chosen([c for c in own if c.kind is ClaimKind.PORT], wanted)
        for each in chosen:
            mine = acting is not None and each.worker == acting.owner
            if each.holder is not None and not mine and not _may_release(each.holder, above):
                raise ForeignError(
                    f"port {each.value} is held by process {each.holder.pid}, which lives and is "
                    "not above this command",
                    remedy="let that process release it, or end it",
                    resource=each.value,
                )
            claiming.release(conn, each)
    return tuple(chosen)


def _may_release(holder: ProcessIdentity, above: set[tuple[int, int]] | tuple[()]) -> bool:
    return (
        holder.pid == os.getpid()
        or (holder.pid, holder.start_ticks) in above
        or claiming.is_dead(holder)
    )


def _of_pid(conn: Connection, pid: int) -> list[Claim]:
    known, _ = claims.all_(conn)
    return [each for each in known if each.holder is not None and each.holder.pid == pid]


def _chosen(own: list[Claim], wanted: Sequence[str]) -> list[Claim]:
    if not wanted:
        return own
    chosen = []
    for word in wanted:
        found = [each for each in own if word in {each.name, each.value}]
        if not found:
            known = ", ".join(f"{each.name}={each.value}" for each in own) or "none"
            meant = did_you_mean(word, [each.name for each in own])
            raise NotFoundError(
                f"no port {word!r} is claimed here{meant}", remedy=f"claimed are: {known}"
            )
        chosen += [each for each in found if each not in chosen]
    return chosen


def listed(context: Context, *, everywhere: bool, holder: int | None) -> tuple[Claim, ...]:
    """The claims of ports: of this environment, of a process, or of everybody."""
    with context.registry.read() as conn:
        known, _ = claims.all_(conn)
    environment = environments.find(context)
    ports = [each for each in known if each.kind is ClaimKind.PORT]
    if holder is not None:
        return tuple(c for c in ports if c.holder is not None and c.holder.pid == holder)
    if everywhere:
        return tuple(ports)
    own = environment.id if environment is not None else None
    return tuple(c for c in ports if own is not None and c.environment == own)
