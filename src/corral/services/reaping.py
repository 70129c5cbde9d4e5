"""The detached work after a session's end: take down what its owner left, as long as it takes.

Also finishes what an earlier one of its kind could not, and gives back the ports that dead
processes had claimed. What is left in the end is shown by `corral status`, with the reason.
"""

from __future__ import annotations

import time

from corral.decide.hooks import END, START, journal_line
from corral.decide.judge import Request, Trigger
from corral.decide.over import was_released
from corral.errors import CorralError
from corral.model.owner import Life
from corral.model.resource import Verdict
from corral.services import owners as rules
from corral.services import process_ports
from corral.services.ending import Subject, reap_job
from corral.services.looking import judge_all, observe_all
from corral.services.protecting import protecting_with_faults
from corral.services.pruning import prune
from corral.services.teardown import carry_out, exit_status
from corral.services.view import look
from corral.store import journal, records, spool_meaning
from corral.store import owners as table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import Backend
    from corral.model.hook import Heard, Payload
    from corral.model.owner import Owner
    from corral.services.context import Context

    MakeBackends = Callable[[Context], Sequence[Backend]]

TRIGGER = "session end"
# Seconds after each try: a busy gate, a hung daemon, a full disk may be over by then.
_PAUSES = (1.0, 5.0, 15.0, 60.0, 0.0)


def finish(
    context: Context,
    make_backends: MakeBackends,
    heard: Heard,
    payload: Payload | None,
    *,
    written: bool,
) -> None:
    """All that follows from a hook's call, tried again a few times where it does not succeed.

    `payload`: what `heard` means. `written`: the hook left it in the spool; it could not where the
    disk was full.
    """
    for pause in _PAUSES:
        try:
            if not written:
                if not _write_late(context, heard, payload):
                    payload = None
                written = True
            done = _try(context, make_backends, payload)
        except CorralError:
            # The registry cannot be written now, or a record is in the way.
            done = False
        if done:
            return
        time.sleep(pause)


def _write_late(context: Context, heard: Heard, payload: Payload | None) -> bool:
    """Write down what the hook could not; False where the session has started again since then."""
    with context.registry.write() as conn:
        owner = table.by_session(conn, payload.session) if payload is not None else None
        if owner is None or not journal.was_hooked_since(conn, owner.id, START, heard.at):
            spool_meaning.apply(conn, heard)
            return True
        detail = "written too late to count: the session has started again"
        line = journal_line(payload, heard.agent, heard.at, owner=owner.id, detail=detail)
        journal.append(conn, **line)
        return False


def _try(context: Context, make_backends: MakeBackends, payload: Payload | None) -> bool:
    """Whether nothing is left to be done."""
    with context.registry.write() as conn:  # takes in what the hook left in the spool
        owner = table.by_session(conn, payload.session) if payload is not None else None
    context, faults = protecting_with_faults(context)
    backends = make_backends(context)
    done = True
    ended = owner if payload is not None and payload.event == END else None
    if ended is not None and not _is_left(context, ended, faults):
        done = _reap(context, backends, ended.id, stacks=True) and not _in_grace(context, ended)
    for other in _unfinished(context, backends):
        if not _is_left(context, other, faults):
            done = _reap(context, backends, other.id, stacks=False) and done
    process_ports.reclaim(context.registry)
    if done:
        prune(context, backends)
    return done


def _in_grace(context: Context, owner: Owner) -> bool:
    """Whether another epoch of the owner crashed just now: its grace is waited for."""
    return rules.state_of(owner, context.settings.grace).life is Life.GRACE


def _is_left(context: Context, owner: Owner, faults: dict[str, str]) -> bool:
    """Whether nothing of an owner can be taken down, since it was where a fault is; says so once.

    The next end of a session after the file was mended takes it.
    """
    with context.registry.read() as conn:
        mine = [r.environment for r in records.all_(conn)[0] if r.owner == owner.id]
        said = [e.detail for e in journal.since(conn, 0.0) if e.owner == owner.id]
    places = {*mine, *(epoch.environment for epoch in owner.epochs)} & faults.keys()
    if not places:
        return False
    where = min(filter(None, places))
    detail = f"nothing is taken down: {faults[where]}"
    if detail not in said:
        with context.registry.write() as conn:
            journal.append(
                conn,
                at=time.time(),
                action="left",
                kind="session",
                resource=next(iter(owner.sessions), owner.id),
                owner=owner.id,
                environment=where,
                trigger=TRIGGER,
                detail=detail,
            )
    return True


def _reap(context: Context, backends: Sequence[Backend], owner: str, *, stacks: bool) -> bool:
    whose = Subject(owner, None, known=True)
    job = reap_job(whose, trigger=TRIGGER, release=True)
    request = job.request._replace(stacks=stacks)
    report = carry_out(context, backends, job._replace(request=request, lock_seconds=None))
    return exit_status(report) == 0


def _unfinished(context: Context, backends: Sequence[Backend]) -> list[Owner]:
    """Owners that were released and still have something that could be taken."""
    view = look(context, wide=True)
    looked = observe_all(backends, view)
    request = Request(Trigger.CLEANUP, now=view.now)
    found = {
        j.owner
        for j in judge_all(looked.observations, view, request)
        if j.owner is not None and j.verdict is Verdict.REAP
    }
    states = [view.world.owners[owner] for owner in sorted(found)]
    return [state.owner for state in states if was_released(state)]
