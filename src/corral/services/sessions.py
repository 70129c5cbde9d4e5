"""Start, end and list sessions: an owner's epochs, as a worker or its hook tells them."""

from __future__ import annotations

import os
import time

from corral.decide.calling import called
from corral.decide.spelling import did_you_mean
from corral.decide.workers import Inherited, inherited_sessions
from corral.errors import ForeignError, NotFoundError, UsageError
from corral.model.tuples import NamedTuple
from corral.services import owners as rules
from corral.services.environments import register
from corral.store import owners as table
from corral.store import spool
from corral.store.registry import DEFAULT_TIMEOUT as GATE_SECONDS
from corral.store.sessions import begin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.owner import Epoch, Owner, OwnerState
    from corral.model.process import ProcessRow
    from corral.services.context import Context


class Started(NamedTuple):
    """A session that was started: its owner, session id, epoch and anchor's pid (or None)."""

    owner: str
    session: str
    epoch: int
    anchor: int | None
    environment: str


def start(
    context: Context, *, anchor: int | None = None, worker: str = "", timeout: float = GATE_SECONDS
) -> Started:
    """Open an epoch for the named session; mint a session id where none is named.

    The same session with the same live anchor keeps its epoch. `anchor`: pid whose death ends it.
    `worker`: its kind. Raises HeldError when the registry is not to be had within `timeout`
    seconds.
    """
    environment = register(context, timeout=timeout)
    above = rules.ancestors(context.pid)
    who = _who(context, above, worker)
    begun = rules.begun_now(context, who, environment.id, above, anchor=anchor)
    with context.registry.write(timeout=timeout) as conn:
        owner, epoch = begin(conn, begun)
    pid = begun.anchor.pid if begun.anchor is not None else None
    return Started(owner, who.session, epoch, pid, environment.id)


def _who(context: Context, above: tuple[ProcessRow, ...], worker: str) -> Inherited:
    session = rules.named_session(context)
    if session is not None:
        return Inherited(worker or rules.NAMED, session)
    found = inherited_sessions(context.environ, above)
    return found[0] if found else Inherited(rules.NAMED, f"session-{os.urandom(6).hex()}")


def end(context: Context, *, force: bool = False) -> str:
    """Record the release of the caller's epochs of the named session; returns the owner's id.

    An epoch whose live anchor is not above the caller belongs to another terminal: when no epoch
    is the caller's, ForeignError, unless `force` releases them all.
    """
    session = rules.named_session(context)
    if session is None:
        inherited = inherited_sessions(context.environ, rules.ancestors(context.pid))
        if not inherited:
            raise UsageError(
                "no session is named", remedy="give --session ID or set CORRAL_SESSION"
            )
        session = inherited[0].session
    with context.registry.read() as conn:
        owner = table.by_session(conn, session)
    if owner is None:
        raise NotFoundError(
            f"there is no session {session!r}{did_you_mean(session, _known(context))}",
            remedy="see: corral session list --all",
        )
    (owner,) = spool.overlay(context.state_dir, (owner,))
    epochs = callers_epochs(owner, rules.ancestors(context.pid), force=force)
    with context.registry.write() as conn:
        for epoch in epochs:
            table.release(
                conn, owner.id, epoch_id=epoch.id, now=time.time(), why="corral session end"
            )
    return owner.id


def _known(context: Context) -> list[str]:
    with context.registry.read() as conn:
        return [session for owner in table.all_(conn)[0] for session in owner.sessions]


def callers_epochs(owner: Owner, above: tuple[ProcessRow, ...], *, force: bool) -> list[Epoch]:
    """The epochs that the caller may release."""
    unreleased = [e for e in owner.epochs if e.released_at is None]
    pids = {(row.pid, row.start_ticks) for row in above}
    mine: list[Epoch] = []
    foreign: list[Epoch] = []
    for epoch in unreleased:
        anchor = epoch.anchor
        elsewhere = (
            anchor is not None
            and (anchor.pid, anchor.start_ticks) not in pids
            and rules.has_live_epoch(owner._replace(epochs=(epoch,)))
        )
        (foreign if elsewhere else mine).append(epoch)
    if foreign and not mine and not force:
        anchor = foreign[0].anchor
        raise ForeignError(
            f"{called(owner, {})} lives in another process ({anchor.pid if anchor else '?'})",
            remedy="end it there, or give --force",
            resource=owner.id,
        )
    return [*mine, *foreign] if force else mine


def states(context: Context) -> tuple[OwnerState, ...]:
    """Every owner with what is proven of its life, oldest first."""
    with context.registry.read() as conn:
        known, _ = table.all_(conn)
    known = list(spool.overlay(context.state_dir, tuple(known)))
    return tuple(
        rules.state_of(owner, context.settings.grace)
        for owner in sorted(known, key=lambda o: o.created_at)
    )
