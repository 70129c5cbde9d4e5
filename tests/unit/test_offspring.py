"""What stands below a process is found, and of it exactly what is part of the same start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corral.decide.offspring import belonging, descendants, key_of
from corral.model.process import ProcessRow, ProcessTable

if TYPE_CHECKING:
    from collections.abc import Iterable

_OWNER = "own-1"
_SUPERVISOR = 50


def _row(pid: int, ppid: int, **other: Any) -> ProcessRow:
    plain = ProcessRow(
        pid=pid, ppid=ppid, start_ticks=pid * 10, uid=1000, session=1, tty=0, state="S",
        comm="node", exe="/usr/bin/node", argv=("node",), mark=_OWNER, mark_readable=True,
        keep=False, namespace=1,
    )  # fmt: skip
    return plain._replace(**other)


def _table(*rows: ProcessRow) -> ProcessTable:
    return ProcessTable({row.pid: row for row in rows}, "boot", 1, 1, 1000)


def _pids(rows: Iterable[ProcessRow]) -> list[int]:
    return [row.pid for row in rows]


def _belonging(table: ProcessTable, **other: Any) -> list[int]:
    given: dict[str, Any] = {
        "owner": _OWNER, "others": frozenset(), "anchors": frozenset(),
        "extra_programs": frozenset(),
    }  # fmt: skip
    return _pids(belonging(table, _SUPERVISOR, **{**given, **other}))


def test_descendants_come_after_their_parents_and_without_the_process_itself() -> None:
    table = _table(_row(50, 1), _row(53, 52), _row(52, 50), _row(51, 50), _row(60, 1))
    assert _pids(descendants(table, 50)) == [52, 51, 53]


def test_zombies_are_no_descendants() -> None:
    table = _table(_row(50, 1), _row(51, 50, state="Z"))
    assert descendants(table, 50) == ()


def test_a_loop_in_a_torn_table_ends() -> None:
    table = _table(_row(50, 52), _row(51, 50), _row(52, 51), _row(7, 7))
    assert _pids(descendants(table, 50)) == [51, 52]


def test_what_belongs_is_found_at_every_depth() -> None:
    table = _table(_row(50, 1), _row(51, 50), _row(52, 51, mark=None))
    assert _belonging(table) == [51, 52]


def test_what_was_recorded_for_another_start_is_left_with_all_below_it() -> None:
    table = _table(_row(50, 1), _row(51, 50), _row(52, 51), _row(53, 50))
    assert _belonging(table, others=frozenset({key_of(table.rows[51])})) == [53]


def test_a_mark_of_another_owner_defeats_descent() -> None:
    table = _table(_row(50, 1), _row(51, 50, mark="own-2"), _row(52, 51, mark=None))
    assert _belonging(table) == []


def test_a_live_anchor_is_left_with_all_below_it() -> None:
    table = _table(_row(50, 1), _row(51, 50), _row(52, 51))
    assert _belonging(table, anchors=frozenset({key_of(table.rows[51])})) == []


def test_a_terminal_multiplexer_is_left_with_its_panes() -> None:
    table = _table(_row(50, 1), _row(51, 50, comm="tmux: server"), _row(52, 51))
    assert _belonging(table) == []
    protected = _table(_row(50, 1), _row(51, 50, comm="mine", exe=""), _row(52, 51))
    assert _belonging(protected, extra_programs=frozenset({"mine"})) == []
