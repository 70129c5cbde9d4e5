"""Which owner a command acts for, and the epochs that owners live in."""

from __future__ import annotations

import os
import time

from corral.decide.over import BootClock, judge_owner
from corral.decide.sessions import session_fault
from corral.decide.workers import CONVERSING, Inherited, find_anchor, inherited_sessions
from corral.errors import UsageError
from corral.kernel import clock, identity, procfs
from corral.services.context import Acting
from corral.store import environments, sessions, spool
from corral.store import owners as table
from corral.store.sessions import Begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.environment import Environment
    from corral.model.owner import Owner, OwnerState
    from corral.model.process import ProcessIdentity, ProcessRow
    from corral.services.context import Context


NAMED = "corral"  # the kind of worker whose session the user named


def new_owner_id() -> str:
    """A random, opaque id that names one worker for ever."""
    return f"own-{os.urandom(8).hex()}"


def boot_clock() -> BootClock:
    """The boot clock now."""
    return BootClock(clock.boottime(), clock.suspended(), clock.boot_id())


def state_of(owner: Owner, grace: float) -> OwnerState:
    """What is proven of an owner's life now."""
    now = boot_clock()
    return judge_owner(
        owner, lambda anchor: identity.presence(anchor, boot_id=now.boot_id), now, grace
    )


def check_session(session: str) -> str:
    """The session id if it can own something: not blank, of sensible length; else UsageError."""
    fault = session_fault(session)
    if fault:
        raise UsageError(f"the session id {fault}", remedy="such an id owns nothing: name another")
    return session


def named_session(context: Context) -> str | None:
    """The session id that the user named by `--session` or CORRAL_SESSION, or None."""
    if context.session is not None:
        return check_session(context.session)
    if "CORRAL_SESSION" in context.environ:
        return check_session(context.environ["CORRAL_SESSION"])
    return None


def acting(context: Context, environment: Environment | None) -> Acting | None:
    """The owner that the caller acts for, if it is known already; writes nothing."""
    with context.registry.read() as conn:
        found = _chosen(context, conn)
        if found is not None:
            owner = table.by_session(conn, found.session)
            return Acting(owner.id, found.session, implicit=False) if owner else None
        if environment is None:
            return None
        implicit = table.implicit(conn, environment.id)
        return Acting(implicit.id, None, implicit=True) if implicit else None


def ensure_acting(context: Context, environment: Environment) -> Acting:
    """The owner that the caller acts for, minted and begun where needed."""
    known = acting(context, environment)
    if known is not None and (known.implicit or _begun(context, known.owner)):
        return known
    with context.registry.write() as conn:
        found = _chosen(context, conn)
        if found is None:
            return Acting(_ensure_implicit(conn, environment.id), None, implicit=True)
        owner = table.by_session(conn, found.session)
        if owner is not None and has_live_epoch(owner):
            return Acting(owner.id, found.session, implicit=False)
        above = ancestors(context.pid)
        begun = begun_now(context, found, environment.id, above)
        identifier, _ = sessions.begin(conn, begun)
        return Acting(identifier, found.session, implicit=False)


def begun_now(
    context: Context,
    who: Inherited,
    environment: str | None,
    above: tuple[ProcessRow, ...],
    *,
    anchor: int | None = None,
) -> Begun:
    """The start, now, of a session in an environment. `anchor`: a pid to use instead of a guess."""
    return Begun(
        session=who.session,
        owner=new_owner_id(),
        worker=who.worker,
        environment=environment,
        boot_id=clock.boot_id(),
        anchor=anchor_for(context, above, who.worker, pid=anchor),
        above=tuple((row.pid, row.start_ticks) for row in above),
        at=time.time(),
        joins=who.worker in CONVERSING,
        mark=next((row.mark for row in above if row.mark), ""),
    )


def _begun(context: Context, owner_id: str) -> bool:
    with context.registry.read() as conn:
        owner = table.find(conn, owner_id)
    return owner is not None and any(
        map(has_live_epoch, spool.overlay(context.state_dir, (owner,)))
    )


def has_live_epoch(owner: Owner) -> bool:
    """Whether an epoch of the owner is not proven to have ended."""
    now = boot_clock()
    return any(
        epoch.released_at is None
        and epoch.boot_id == now.boot_id
        and (
            epoch.anchor is None
            or identity.presence(epoch.anchor, boot_id=now.boot_id)[0].value != "gone"
        )
        for epoch in owner.epochs
    )


def _chosen(context: Context, conn: Connection) -> Inherited | None:
    """The session that the caller acts for: named by the user, else inherited from an agent."""
    named = named_session(context)
    if named is not None:
        return Inherited(NAMED, named)
    return inherited(context, conn)


def inherited(context: Context, conn: Connection) -> Inherited | None:
    """The agent's or CI system's session that the caller may act for; None: a person's command.

    Whoever merely has the variables, as a person in a terminal that an agent once opened, does
    not act for the agent.
    """
    if not inherited_sessions(context.environ, ()):
        return None
    above = ancestors(context.pid)
    for found in inherited_sessions(context.environ, above):
        owner = table.by_session(conn, found.session)
        if owner is None or _may_act(context, conn, owner, found.worker, above):
            return found
    return None


def _may_act(
    context: Context,
    conn: Connection,
    owner: Owner,
    worker: str,
    above: tuple[ProcessRow, ...],
) -> bool:
    anchors = [epoch.anchor for epoch in owner.epochs if epoch.anchor is not None]
    if not anchors or any(_is(row, anchor) for anchor in anchors for row in above):
        return True
    if not has_live_epoch(owner):
        # The agent was started anew, and its hook did not say so: it stands above the caller.
        nearest = find_anchor(context.environ, above, worker)
        if nearest is not None and nearest.worker == worker:
            return True
    from corral.services.chain import is_the_owners

    return is_the_owners(context, conn, owner, above)


def _is(row: ProcessRow, anchor: ProcessIdentity) -> bool:
    return (row.pid, row.start_ticks) == (anchor.pid, anchor.start_ticks) and (
        anchor.boot_id == clock.boot_id()
    )


def ancestors(pid: int) -> tuple[ProcessRow, ...]:
    """The rows above a process, nearest first."""
    return procfs.ancestors(pid)


def anchor_for(
    context: Context,
    above: tuple[ProcessRow, ...],
    worker: str = "",
    *,
    pid: int | None = None,
) -> ProcessIdentity | None:
    """The anchor of a new epoch: `pid` if it is given, else the worker above the caller, or none.

    Raises UsageError when `pid` names no process.
    """
    if pid is not None:
        try:
            return identity.identify(pid)
        except identity.ProcessGoneError as error:
            raise UsageError(
                f"--anchor {pid}: there is no such process", remedy="name a process that lives"
            ) from error
    found = find_anchor(context.environ, above, worker)
    if found is None:
        return None
    try:
        return identity.identify(found.pid)
    except identity.ProcessGoneError:
        # The agent ended while its last command was starting: nothing can be anchored to it.
        return None


def called(context: Context, identifier: str) -> str:
    """An owner in words: its session or worktree, and its id."""
    from corral.decide.calling import called as words
    from corral.services.environments import places

    with context.registry.read() as conn:
        owner = table.find(conn, identifier)
    return words(owner, places(context)) if owner is not None else f"owner {identifier}"


def _ensure_implicit(conn: Connection, environment: str) -> str:
    found = table.implicit(conn, environment)
    if found is not None:
        return found.id
    environments.require(conn, environment)
    identifier = new_owner_id()
    table.mint(conn, identifier, implicit_of=environment, parent=None, now=time.time())
    return identifier
