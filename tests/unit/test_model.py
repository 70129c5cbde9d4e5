"""Values: named tuples that behave like typing's, identities, tables and reports."""

from __future__ import annotations

import copy
import pickle

import pytest

from corral.decide.ancestry import Anchor, Look, Root, relevant
from corral.model.process import ProcessIdentity, ProcessRow, ProcessTable
from corral.model.record import Record, RecordState
from corral.model.report import Plan
from corral.model.resource import Judgement, Kind, Sighting, Verdict
from corral.model.tuples import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


def test_values_are_made_by_position_and_by_name() -> None:
    assert Point(1) == Point(x=1) == Point(1, y=2) == (1, 2)
    assert Point(1).sum == 3
    assert Point._make([3, 4]) == (3, 4)


def test_values_can_be_changed_only_into_new_ones() -> None:
    point = Point(1)
    assert point._replace(y=5) == (1, 5)
    assert point == (1, 2)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})]
)
def test_wrong_fields_are_refused(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)
    with pytest.raises(ValueError, match="unexpected"):
        Point(1)._replace(nothing=1)  # type: ignore[call-arg]


def test_values_show_name_and_travel_whole() -> None:
    point = Point(1)
    assert repr(point) == "Point(x=1, y=2)"
    assert point._asdict() == {"x": 1, "y": 2}
    assert (Point._fields, Point._field_defaults) == (("x", "y"), {"y": 2})
    assert copy.copy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


ONE = ProcessIdentity(5, 50, "boot", 1, 7)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ONE, True),
        (ONE._replace(pidfd_inode=None), True),
        (ONE._replace(pidfd_inode=8), False),
        (ONE._replace(start_ticks=51), False),
        (ONE._replace(boot_id="other"), False),
        (ONE._replace(pid_namespace=2), False),
        (ONE._replace(pid=6), False),
    ],
)
def test_a_process_is_named_by_more_than_its_pid(other: ProcessIdentity, *, same: bool) -> None:
    assert ONE.matches(other) is same
    assert other.matches(ONE) is same


def _row(pid: int, ppid: int, *, mark: str | None = None, state: str = "S") -> ProcessRow:
    return ProcessRow(pid, ppid, pid * 10, 0, pid, 0, state, "x", "", ("x",), mark, True, False, 1)


def _table(*rows: ProcessRow) -> ProcessTable:
    return ProcessTable({r.pid: r for r in rows}, "boot", 1, 99, 0)


def test_the_rows_above_end_at_the_top_and_at_a_loop() -> None:
    table = _table(_row(1, 0), _row(2, 1), _row(3, 2), _row(8, 9), _row(9, 8))
    assert [r.pid for r in table.above(3)] == [2, 1]
    assert [r.pid for r in table.above(8)] == [9]
    assert table.above(77) == ()


def test_only_the_live_process_of_that_identity_is_found() -> None:
    table = _table(_row(3, 1), _row(4, 1, state="Z"))
    assert table.find(ProcessIdentity(3, 30, "boot", 1)) is not None
    assert table.find(ProcessIdentity(3, 31, "boot", 1)) is None
    assert table.find(ProcessIdentity(4, 40, "boot", 1)) is None
    assert table.find(ProcessIdentity(5, 50, "boot", 1)) is None


def test_marked_and_recorded_trees_and_what_is_above_them_are_relevant() -> None:
    table = _table(
        _row(1, 0), _row(2, 1), _row(3, 2, mark="o"), _row(4, 3), _row(10, 1), _row(11, 10),
        _row(12, 11), _row(20, 1), _row(21, 20),
    )  # fmt: skip
    root = Root(ProcessIdentity(10, 100, "boot", 1), "rec", "service", "", "o", None, None)
    gone = root._replace(identity=ProcessIdentity(20, 999, "boot", 1))
    anchor = Anchor(ProcessIdentity(2, 20, "boot", 1), "o")
    assert relevant(Look(table, (root, gone), (anchor,))) == {1, 2, 3, 10, 11, 12}


def _sighting(kind: Kind, **identity: str | int) -> Sighting:
    return Sighting(kind, "id", "n", "b", "s", None, tuple(identity.items()))


def test_what_is_kept_is_named_by_identity_where_ids_are_given_anew() -> None:
    process = _sighting(Kind.PROCESS, pid=5, start_ticks=50, boot_id="boot", pid_namespace=1)
    assert process.keep_id == "5@50@boot@1"
    assert _sighting(Kind.CONTAINER).keep_id == "id"


def test_a_plan_is_empty_without_targets() -> None:
    kept = Judgement(_sighting(Kind.CONTAINER), Verdict.KEEP, "r", "c")
    reaped = kept._replace(verdict=Verdict.REAP)
    assert Plan((kept,), ()).empty
    plan = Plan((kept, reaped), ())
    assert plan.targets == (reaped,)
    assert not plan.empty


def test_a_root_is_what_a_record_names() -> None:
    pinned = ProcessIdentity(10, 100, "boot", 1)
    record = Record(
        "rec", Kind.PROCESS, "processes", "service", "web", "o", "s", "env", RecordState.LIVE, (),
        None, 0.0,
    )  # fmt: skip
    assert Root.of(record, pinned) == Root(pinned, "rec", "service", "web", "o", "s", "env")
