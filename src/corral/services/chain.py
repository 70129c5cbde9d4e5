"""Whether a caller may act for the owner whose session id it inherited."""

from __future__ import annotations

import os

from corral.decide.ancestry import Anchor, Look, Root, sight_process
from corral.errors import InvalidValueError
from corral.kernel import clock, identity, procstat
from corral.model.process import ProcessRow, ProcessTable
from corral.model.record import RecordState
from corral.model.resource import Kind
from corral.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.owner import Owner
    from corral.services.context import Context


def is_the_owners(
    context: Context, conn: Connection, owner: Owner, above: tuple[ProcessRow, ...]
) -> bool:
    """Whether the calling process is proven to be the owner's, as any process would be.

    By its chain of parents up to an anchor or a recorded process; or by its mark, where it was
    detached from its parents and has no terminal. `above`: its ancestors, nearest first.
    """
    own = _own_row(context)
    if own is None:
        return False
    boot_id, namespace = clock.boot_id(), procstat.own_namespace()
    rows = {row.pid: row for row in (own, *above)}
    table = ProcessTable(rows, boot_id, namespace, own.pid, own.uid)
    anchors = tuple(Anchor(e.anchor, owner.id) for e in owner.epochs if e.anchor is not None)
    seen = sight_process(Look(table, _roots(conn), anchors), own.pid)
    return bool(seen.marks) and not seen.doubts and seen.marks[0].owner == owner.id


def _own_row(context: Context) -> ProcessRow | None:
    stat = procstat.read_stat(context.pid)
    if stat is None:
        return None
    return ProcessRow(
        pid=context.pid,
        ppid=stat.ppid,
        start_ticks=stat.start_ticks,
        uid=os.geteuid(),
        session=stat.session,
        tty=stat.tty,
        state=stat.state,
        comm=stat.comm,
        exe="",
        argv=None,
        mark=context.environ.get("CORRAL_OWNER") or None,
        mark_readable=True,
        keep=False,
        namespace=procstat.own_namespace(),
    )


def _roots(conn: Connection) -> tuple[Root, ...]:
    found = []
    for record in records.all_(conn)[0]:
        if record.kind is not Kind.PROCESS or record.state is not RecordState.LIVE:
            continue
        try:
            pinned = identity.decode_identity(record.identity)
        except InvalidValueError:
            # Shown as a bad record elsewhere; it proves nothing.
            continue
        found.append(Root.of(record, pinned))
    return tuple(found)
