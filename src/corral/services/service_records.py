"""What `corral run` writes down: an intent before the fork, an identity before the exec.

Killed at any moment, it leaves either nothing that runs or a process whose record names it. No
write waits for the disk: records of processes mean nothing after a power failure.
"""

from __future__ import annotations

import json
import os
import time

from corral.decide.offspring import belonging, descendants, key_of
from corral.errors import InvalidValueError, RunError
from corral.kernel import children, identity, procfs
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.services import lifecycle
from corral.services.owners import has_live_epoch
from corral.services.running import Service, details, is_gone, named
from corral.store import environments, journal, owners, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection
    from typing import Any

    from corral.model.process import ProcessIdentity, ProcessRow, ProcessTable
    from corral.services.context import Context

BACKEND = "process"
_Key = tuple[int, int]  # pid and start ticks


class Ticket(NamedTuple):
    """What all records of one start have in common.

    `service` and `supervisor` are ids of records; `supervisor` is "" in the foreground.
    """

    service: str
    supervisor: str
    name: str
    owner: str
    session: str | None
    environment: str
    created_at: float
    detail: str


def new_record_id() -> str:
    """A random id for a record."""
    return f"rec-{os.urandom(8).hex()}"


def ticket(
    name: str,
    owner: str,
    session: str | None,
    environment: str,
    *,
    detach: bool,
    detail: dict[str, Any],
) -> Ticket:
    """A ticket with new ids, made now."""
    supervisor = new_record_id() if detach else ""
    text = json.dumps(detail)
    return Ticket(new_record_id(), supervisor, name, owner, session, environment, time.time(), text)


def reserve(context: Context, wanted: Ticket) -> Service | None:
    """Write the intents, unless something runs or starts under that name: then what does.

    What certainly ended under that name is forgotten. Raises HeldError and RegistryError; then
    nothing was written and nothing may be started.
    """
    creator = identity.own_identity()
    with (
        lifecycle.hold(context.state_dir, what="run"),
        context.registry.write(durable=False) as conn,
    ):
        environments.require(conn, wanted.environment)
        if wanted.name:
            found = named(conn, wanted.environment, wanted.name)
            if found.alive or found.starting:
                return found
            for record in found.dead:
                records.delete(conn, record.id)
        records.insert(conn, _intent(wanted, wanted.service, "service", creator))
        if wanted.supervisor:
            records.insert(conn, _intent(wanted, wanted.supervisor, "supervisor", creator))
    return None


def _intent(wanted: Ticket, record: str, role: str, creator: ProcessIdentity) -> Record:
    return Record(
        id=record,
        kind=Kind.PROCESS,
        backend=BACKEND,
        role=role,
        name=wanted.name,
        owner=wanted.owner,
        session=wanted.session,
        environment=wanted.environment,
        state=RecordState.INTENT,
        identity=(),
        creator=creator,
        created_at=wanted.created_at,
        detail=wanted.detail if role == "service" else _of(wanted),
    )


def _of(wanted: Ticket) -> str:
    """The detail of what stands beside a service: the service's own, and which it is."""
    return json.dumps({**json.loads(wanted.detail), "of": wanted.service})


def pin_supervisor(context: Context, wanted: Ticket, supervisor: ProcessIdentity) -> None:
    """Record the supervisor, and that it is the supervisor who will create the service."""
    with context.registry.write(durable=False) as conn:
        _pin(conn, wanted, wanted.supervisor, supervisor)
        records.delete(conn, wanted.service)
        records.insert(conn, _intent(wanted, wanted.service, "service", supervisor))


def pin_service(context: Context, wanted: Ticket, process: ProcessIdentity) -> None:
    """Record the process that is about to execute the command; RunError when it may not."""
    with context.registry.write(durable=False) as conn:
        _pin(conn, wanted, wanted.service, process)


def _pin(conn: Connection, wanted: Ticket, record: str, process: ProcessIdentity) -> None:
    owner = owners.find(conn, wanted.owner)
    if owner is None or (owner.implicit_of is None and not has_live_epoch(owner)):
        raise RunError("the session ended while the command was being started")
    if records.find(conn, record) is None:
        raise RunError("its record was taken away while the command was being started")
    records.pin(conn, record, identity.encode_identity(process), RecordState.LIVE)


def drop(context: Context, ids: Sequence[str]) -> None:
    """Forget records of what certainly ended or was never started."""
    with context.registry.write(durable=False) as conn:
        for record in ids:
            records.delete(conn, record)


def record_offspring(context: Context, wanted: Ticket) -> None:
    """Record every process below this one that is part of this start and has no record yet."""
    if children.child_pids() == frozenset():
        return  # a subreaper without children has no descendants
    table = procfs.snapshot()
    if not descendants(table, table.self_pid):
        return
    with context.registry.read() as conn:
        if not any(_changes(conn, context, wanted, table)):
            return  # without waiting for the gate, or others for this
    with context.registry.write(durable=False) as conn:
        obsolete, fresh = _changes(conn, context, wanted, table)
        for record in obsolete:
            records.delete(conn, record)
        for row in fresh:
            _record(conn, wanted, row.pid, key_of(row))


def _changes(
    conn: Connection, context: Context, wanted: Ticket, table: ProcessTable
) -> tuple[list[str], list[ProcessRow]]:
    """Records to delete, and processes to record.

    Deleted is what was seen before it was recorded for a start of its own, which it is now.
    """
    own, others = _recorded(conn, wanted, table.boot_id)
    found = _offspring(conn, context, wanted, table, others)
    obsolete = [own[key] for key in own.keys() & others]
    return obsolete, [row for row in found if key_of(row) not in own]


def offspring(context: Context, wanted: Ticket) -> tuple[ProcessIdentity, ...]:
    """The processes below this one that are part of this start, recorded or not."""
    table = procfs.snapshot()
    with context.registry.read() as conn:
        _, others = _recorded(conn, wanted, table.boot_id)
        rows = _offspring(conn, context, wanted, table, others)
    return tuple(table.identity(row) for row in rows)


def _offspring(
    conn: Connection,
    context: Context,
    wanted: Ticket,
    table: ProcessTable,
    others: frozenset[_Key],
) -> tuple[ProcessRow, ...]:
    return belonging(
        table,
        table.self_pid,
        owner=wanted.owner,
        others=others,
        anchors=_anchors(conn, table.boot_id),
        extra_programs=context.settings.protect,
    )


def _record(conn: Connection, wanted: Ticket, pid: int, key: _Key) -> None:
    try:
        found = identity.identify(pid)
    except identity.ProcessGoneError:
        # It ended since the look: nothing to be recorded.
        return
    if (found.pid, found.start_ticks) != key:
        return
    intent = _intent(wanted, new_record_id(), "descendant", identity.own_identity())
    pairs = identity.encode_identity(found)
    records.insert(
        conn,
        intent._replace(state=RecordState.LIVE, identity=pairs, created_at=time.time()),
    )


def _recorded(
    conn: Connection, wanted: Ticket, boot_id: str
) -> tuple[dict[_Key, str], frozenset[_Key]]:
    """The processes of this start with the ids of their records, and those of other starts."""
    own: dict[_Key, str] = {}
    others: set[_Key] = set()
    for record in records.all_(conn)[0]:
        if record.kind is not Kind.PROCESS or record.state is not RecordState.LIVE:
            continue
        try:
            pinned = identity.decode_identity(record.identity)
        except InvalidValueError:
            # Shown as a bad record elsewhere; it names no process.
            continue
        key = (pinned.pid, pinned.start_ticks)
        if pinned.boot_id == boot_id and _is_of_start(record, wanted):
            own[key] = record.id
        elif pinned.boot_id == boot_id:
            others.add(key)
    return own, frozenset(others)


def _anchors(conn: Connection, boot_id: str) -> frozenset[_Key]:
    return frozenset(
        (epoch.anchor.pid, epoch.anchor.start_ticks)
        for owner in owners.all_(conn)[0]
        for epoch in owner.epochs
        if epoch.anchor is not None and epoch.anchor.boot_id == boot_id
    )


def forget_ended(context: Context, wanted: Ticket) -> None:
    """Forget the records of this start whose processes are proven gone."""
    with context.registry.write(durable=False) as conn:
        _forget_ended(conn, wanted)


def close(context: Context, wanted: Ticket, status: int | None) -> None:
    """The end of a detached service: no records, and a line in the journal.

    Called by its supervisor, which has nothing left to supervise. `status`: the exit status.
    """
    with context.registry.write(durable=False) as conn:
        _forget_ended(conn, wanted)
        records.delete(conn, wanted.supervisor)
        journal.append(
            conn,
            at=time.time(),
            action="ended",
            kind=Kind.PROCESS.value,
            resource=wanted.service,
            name=wanted.name,
            owner=wanted.owner,
            environment=wanted.environment,
            trigger="run",
            proof="",
            detail=f"exit status {status}",
        )


def _forget_ended(conn: Connection, wanted: Ticket) -> None:
    for record in _of_start(conn, wanted):
        if is_gone(record):
            records.delete(conn, record.id)


def _of_start(conn: Connection, wanted: Ticket) -> tuple[Record, ...]:
    return tuple(
        record
        for record in records.of_environment(conn, wanted.environment)
        if record.kind is Kind.PROCESS and _is_of_start(record, wanted)
    )


def _is_of_start(record: Record, wanted: Ticket) -> bool:
    return record.id == wanted.service or details(record).get("of") == wanted.service
