"""Which processes below one of ours are part of what was started there."""

from __future__ import annotations

from corral.decide.protected import status_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.process import ProcessRow, ProcessTable

_Key = tuple[int, int]


def descendants(table: ProcessTable, pid: int) -> tuple[ProcessRow, ...]:
    """The live processes below `pid`, parents before their children; `pid` itself is not one."""
    return _below(table, pid, frozenset())


def belonging(
    table: ProcessTable,
    pid: int,
    *,
    owner: str,
    others: frozenset[_Key],
    anchors: frozenset[_Key],
    extra_programs: frozenset[str],
) -> tuple[ProcessRow, ...]:
    """The live processes below `pid` that are part of what was started for `owner` there.

    `others`: processes that were recorded for another start, `anchors`: the live anchors, each as
    (pid, start ticks). Those, what carries another owner's mark and what is only ever shown is
    left out with all that stands below it.
    """
    strangers = frozenset(
        row.pid
        for row in table.rows.values()
        if key_of(row) in others
        or key_of(row) in anchors
        or (row.mark or owner) != owner
        or status_only(row, extra_programs) is not None
    )
    return _below(table, pid, strangers)


def key_of(row: ProcessRow) -> _Key:
    """What names the row's process within this boot and pid namespace."""
    return (row.pid, row.start_ticks)


def _below(table: ProcessTable, pid: int, without: frozenset[int]) -> tuple[ProcessRow, ...]:
    children: dict[int, list[ProcessRow]] = {}
    for row in table.rows.values():
        if row.pid not in without and row.pid != row.ppid:
            children.setdefault(row.ppid, []).append(row)
    found: list[ProcessRow] = []
    seen, level = {pid}, [pid]
    while level:
        rows = [row for parent in level for row in children.get(parent, ())]
        fresh = [row for row in rows if row.pid not in seen]
        seen.update(row.pid for row in fresh)
        found += [row for row in fresh if not row.dead]
        level = [row.pid for row in fresh]
    return tuple(found)
