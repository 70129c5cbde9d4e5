"""The process table where there is no /proc: psutil on Linux stands in for macOS."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from corral.kernel import _psutil_table, clock, procfs
from support.programs import program, started
from support.waiting import eventually

if TYPE_CHECKING:
    from corral.model.process import ProcessRow
    from support.processes import Tracker


def test_the_table_holds_this_process_and_no_namespace() -> None:
    table = _psutil_table.snapshot()
    assert (table.boot_id, table.pid_namespace) == (clock.boot_id(), 0)
    own = table.rows[os.getpid()]
    assert (own.uid, own.ppid, own.session) == (os.geteuid(), os.getppid(), os.getsid(0))
    assert table.find(table.identity(own)) == own
    assert _psutil_table.snapshot(boot_id="known").boot_id == "known"


@pytest.mark.parametrize(
    ("environ", "mark", "readable", "keep"),
    [
        ({"CORRAL_OWNER": "own-1", "CORRAL_KEEP": "1"}, "own-1", True, True),
        ({"CORRAL_OWNER": ""}, None, True, False),
        ({}, None, False, False),
    ],
)
def test_a_row_is_the_same_as_from_proc(
    track: Tracker, environ: dict[str, str], mark: str | None, readable: bool, keep: bool
) -> None:
    child, _ = started(track, program("say(); sleep()"), env=environ)
    row = _psutil_table.snapshot().rows[child.pid]
    assert (row.mark, row.mark_readable, row.keep) == (mark, readable, keep)
    if sys.platform == "linux":
        proc = procfs.snapshot().rows[child.pid]
        same = ("pid", "ppid", "uid", "session", "tty", "state", "comm", "exe", "argv")
        assert [getattr(row, name) for name in same] == [getattr(proc, name) for name in same]


def test_a_process_is_told_from_the_next_by_its_start(track: Tracker) -> None:
    child, _ = started(track, program("say(); sleep()"))
    stat = _psutil_table.read_stat(child.pid)
    assert stat is not None
    assert stat == _psutil_table.read_stat(child.pid)
    assert stat.start_ticks == _psutil_table.snapshot().rows[child.pid].start_ticks
    assert stat.start_ticks == round(psutil.Process(child.pid).create_time() * 100)


def zombie(pid: int) -> ProcessRow | None:
    """Its row once it is dead; a look that meets its end has no row of it."""
    row = _psutil_table.snapshot().rows.get(pid)
    return row if row is not None and row.dead else None


def test_a_zombie_is_dead_and_one_that_is_gone_has_no_row(track: Tracker) -> None:
    child = track.spawn(["true"])
    process = psutil.Process(child.pid)
    row = eventually(lambda: zombie(child.pid))
    assert row is not None
    assert (row.argv, row.mark, row.mark_readable) == ((), None, True)
    child.wait()
    assert _psutil_table.read_row(process, os.geteuid()) is None
    assert _psutil_table.read_stat(child.pid) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_environment_is_not_looked_at(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"], user=65534, env={"CORRAL_OWNER": "own-1"})
    eventually(lambda: _psutil_table.snapshot().rows[child.pid].comm == "sleep")
    row = _psutil_table.snapshot().rows[child.pid]
    assert (row.uid, row.mark, row.mark_readable, row.exe) == (65534, None, False, "")
    assert row.argv == ("sleep", "600")
