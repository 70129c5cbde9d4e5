"""After a teardown: the journal's lines, and records of what was verified gone are dropped."""

from __future__ import annotations

import time

from corral.decide.judge import Trigger
from corral.errors import InvalidValueError
from corral.kernel import clock, identity
from corral.model.environment import Existence
from corral.model.process import Presence
from corral.model.record import RecordState
from corral.model.resource import Kind
from corral.services import witnesses
from corral.store import claims, environments, journal, owners, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.contracts import View
    from corral.model.record import Record
    from corral.model.report import Report
    from corral.model.resource import Judgement
    from corral.services.context import Context
    from corral.services.teardown import Teardown


def write_down(context: Context, report: Report, job: Teardown, view: View) -> None:
    """One transaction: a journal line for each removal, records of the gone dropped."""
    gone = [*report.removed, *report.already_gone]
    stale = [
        r
        for r in view.records
        if _covered(r, job, view) and (r.id in report.stale or process_is_gone(r))
    ]
    lost = _lost_environments(view, report) if job.request.trigger is Trigger.CLEANUP else []
    if not (gone or report.remaining or stale or lost):
        return
    with context.registry.write() as conn:
        for target in report.removed:
            _journal(conn, "removed", target, job.trigger)
        for target in report.remaining:
            _journal(conn, "remaining", target, job.trigger)
        for target in gone:
            _drop(conn, target)
        for record in stale:
            records.delete(conn, record.id)
        for environment in lost:
            forget_environment(conn, environment)
    for environment in lost:
        witnesses.forget(context.state_dir, environment)


def _journal(conn: Connection, action: str, target: Judgement, trigger: str) -> None:
    sighting = target.sighting
    supervisor = journal.SUPERVISOR if sighting.state == "supervisor" else ""
    journal.append(
        conn,
        at=time.time(),
        action=action,
        kind=sighting.kind.value,
        resource=sighting.id,
        name=sighting.name,
        owner=target.owner,
        environment=target.environment,
        trigger=trigger,
        proof=target.proof.value if target.proof else "",
        detail=f"{supervisor}{target.reason}",
    )


def _drop(conn: Connection, target: Judgement) -> None:
    """Drop the record of exactly this resource; a descendant points to another's record."""
    if target.sighting.record is None:
        return
    record = records.find(conn, target.sighting.record)
    if record is not None and _same(record, target):
        records.delete(conn, record.id)


def _same(record: Record, target: Judgement) -> bool:
    if record.kind is not Kind.PROCESS:
        return True
    pairs = dict(target.sighting.identity)
    return all(pairs.get(k) == v for k, v in record.identity if k != "pidfd_inode")


def _covered(record: Record, job: Teardown, view: View) -> bool:
    request = job.request
    if request.trigger is Trigger.CLEANUP:
        return True
    if request.trigger is Trigger.DOWN:
        return record.environment == request.environment
    del view
    return record.owner == request.owner


def process_is_gone(record: Record) -> bool:
    """Whether a process record names nothing any more: its process, or its creator, is gone."""
    if record.kind is not Kind.PROCESS:
        return False
    try:
        if record.state is RecordState.INTENT:
            pinned = record.creator
        else:
            pinned = identity.decode_identity(record.identity)
    except InvalidValueError:
        # Not understood is not gone.
        return False
    if pinned is None:
        return False
    return identity.presence(pinned, boot_id=clock.boot_id())[0] is Presence.GONE


def _lost_environments(view: View, report: Report) -> list[str]:
    """Environments that are proven gone and of which nothing is left but rows and claims."""
    busy = {j.environment for j in (*report.remaining, *report.left) if j.environment is not None}
    failed = any(r.state.value == "failed" for r in report.backends)
    if failed:
        return []
    return [
        e
        for e, state in view.world.environments.items()
        if state.existence is Existence.GONE
        and e not in busy
        and not any(
            r.environment == e and r.kind is not Kind.PROCESS and r.id not in report.stale
            for r in view.records
        )
    ]


def forget_environment(conn: Connection, environment: str) -> None:
    """Give back an environment's claims and forget it."""
    claims.release_environment(conn, environment)
    for output in environments.outputs(conn, environment):
        environments.forget_output(conn, environment, output.path)
    environments.delete(conn, environment)
    owners.forget_implicit(conn, environment)
