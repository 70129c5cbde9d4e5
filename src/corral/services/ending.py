"""The ways of taking down: a worker's own things, orphans, or a whole environment."""

from __future__ import annotations

from corral.decide.judge import Request, Trigger
from corral.errors import ForeignError
from corral.model.owner import Life, Owner, OwnerState
from corral.model.tuples import NamedTuple
from corral.services import owners as rules
from corral.services.environments import find
from corral.services.teardown import Teardown, carry_out
from corral.store import owners as table
from corral.store import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import Backend, View
    from corral.model.environment import Environment
    from corral.model.report import Report
    from corral.services.context import Context


class Subject(NamedTuple):
    """Whose things a reap is about: a known owner, or a session id that no owner has."""

    owner: str
    session: str | None
    known: bool


def subject(context: Context, environment: Environment | None) -> Subject | None:
    """The owner that `--session` names, else the one the caller acts for; None: nobody yet."""
    session = rules.named_session(context)
    if session is not None:
        with context.registry.read() as conn:
            owner = table.by_session(conn, session)
        if owner is not None:
            return Subject(owner.id, session, known=True)
        return Subject(f"session:{session}", session, known=False)
    acting = rules.acting(context, environment)
    return Subject(acting.owner, acting.session, known=True) if acting else None


def refuse_foreign(context: Context, whose: Subject) -> None:
    """ForeignError when the subject lives elsewhere: its live anchor is not above the caller."""
    if not whose.known:
        return
    with context.registry.read() as conn:
        owner = table.find(conn, whose.owner)
    if owner is None:
        return
    (owner,) = spool.overlay(context.state_dir, (owner,))
    state = rules.state_of(owner, context.settings.grace)
    if state.life is Life.OVER or not state.anchored:
        return
    above = {(row.pid, row.start_ticks) for row in rules.ancestors(context.pid)}
    live = [
        e.anchor
        for e in owner.epochs
        if e.anchor is not None
        and e.released_at is None
        and rules.has_live_epoch(owner._replace(epochs=(e,)))
    ]
    if any((a.pid, a.start_ticks) in above for a in live):
        return
    raise ForeignError(
        f"{rules.called(context, whose.owner)} is alive: its anchor, process {live[0].pid}, "
        "is not above this command",
        remedy="end it there, or give --force",
        resource=whose.owner,
    )


def reap_job(whose: Subject, *, trigger: str = "reap", release: bool = False) -> Teardown:
    """The teardown of one owner's things; `release`: only if the owner is over."""
    kind = Trigger.RELEASE if release else Trigger.REAP
    adjust = None if whose.known else _with_stranger(whose)
    return Teardown(Request(kind, owner=whose.owner), trigger, adjust=adjust)


def _with_stranger(whose: Subject) -> Callable[[View], View]:
    """Let a session id that no owner has stand for an owner of its own, for this teardown only."""

    def adjust(view: View) -> View:
        session = whose.session or ""
        owner = Owner(whose.owner, None, None, view.now, (session,), ())
        state = OwnerState(owner, Life.OVER, "named by its session id only", anchored=False)
        world = view.world._replace(
            owners={**view.world.owners, owner.id: state},
            sessions={**view.world.sessions, session: owner.id},
        )
        return view._replace(world=world)

    return adjust


def chosen_job(context: Context, *, force: bool = False) -> Teardown | None:
    """The teardown of what the named or acting owner owns; None when there is no such owner.

    Raises ForeignError when it lives elsewhere, unless `force`.
    """
    whose = subject(context, find(context))
    if whose is None:
        return None
    if not force:
        refuse_foreign(context, whose)
    return reap_job(whose)


def reap(context: Context, backends: Sequence[Backend], *, force: bool = False) -> Report | None:
    """Take down what the named or acting owner owns; None when there is no such owner."""
    job = chosen_job(context, force=force)
    return carry_out(context, backends, job) if job is not None else None


def cleanup_job(*, now: float, older_than: float | None = None, data: bool = False) -> Teardown:
    """The teardown of orphans."""
    request = Request(Trigger.CLEANUP, data=data, older_than=older_than, now=now)
    return Teardown(request, "cleanup", wide=True)
