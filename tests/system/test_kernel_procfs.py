"""The process table, against real processes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from corral.kernel import clock, procfs, procstat
from corral.kernel._rawfile import read_all
from support.engines import require_engine
from support.programs import in_pid_namespace, program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.model.process import ProcessRow
    from support.processes import Tracker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def row_of(pid: int) -> ProcessRow:
    return procfs.snapshot().rows[pid]


def row_once(pid: int, holds: Callable[[ProcessRow], bool]) -> ProcessRow:
    """The row as soon as it is as expected."""
    rows: list[ProcessRow] = []

    def looked() -> bool:
        # A look that meets its end leaves it out: the next one shows what is left of it.
        rows.extend(row for row in (procfs.look_at(pid),) if row is not None)
        return bool(rows) and holds(rows[-1])

    eventually(looked)
    return rows[-1]


def row_that_sleeps(track: Tracker, **options: Any) -> ProcessRow:
    child, _ = started(track, program("say(); sleep()"), **options)
    return row_of(child.pid)


def test_the_table_knows_who_looked_and_when() -> None:
    table = procfs.snapshot()
    assert table.boot_id == clock.boot_id()
    assert table.pid_namespace == os.stat("/proc/self/ns/pid").st_ino
    assert (table.self_pid, table.uid) == (os.getpid(), os.geteuid())
    own = table.rows[os.getpid()]
    assert table.find(table.identity(own)) == own


def test_a_boot_id_that_the_caller_knows_is_taken() -> None:
    assert procfs.snapshot(boot_id="known").boot_id == "known"


def test_a_row_says_what_the_kernel_says(track: Tracker) -> None:
    child, _ = started(track, program("say(); sleep()"), start_new_session=True)
    row = row_of(child.pid)
    assert (row.pid, row.ppid, row.uid) == (child.pid, os.getpid(), os.geteuid())
    assert (row.session, row.tty, row.dead) == (child.pid, 0, False)
    assert row.argv is not None
    assert row.argv[0] == sys.executable
    assert row.exe == os.path.realpath(sys.executable)
    assert row.namespace == os.stat("/proc/self/ns/pid").st_ino
    assert row.start_ticks == pytest.approx(
        clock.boottime() * os.sysconf("SC_CLK_TCK"), abs=30 * os.sysconf("SC_CLK_TCK")
    )


def test_a_controlling_terminal_is_seen(track: Tracker) -> None:
    source = """
        import pty
        pid, terminal = pty.fork()
        if not pid:
            sleep()
        say(pid)
        sleep()
    """
    _, pid = started(track, program(source))
    track.pid(pid)
    assert row_of(pid).tty != 0


@pytest.mark.parametrize(
    ("environ", "mark", "keep"),
    [
        ({}, None, False),
        ({"CORRAL_OWNER": "own-1"}, "own-1", False),
        ({"CORRAL_OWNER": "own-1", "CORRAL_KEEP": "1"}, "own-1", True),
        ({"CORRAL_OWNER": ""}, None, False),
        ({"OTHER": "CORRAL_OWNER=own-1"}, None, False),
    ],
)
def test_the_mark_is_read_from_the_environment(
    track: Tracker, environ: dict[str, str], mark: str | None, keep: bool
) -> None:
    row = row_that_sleeps(track, env=environ)
    assert (row.mark, row.mark_readable, row.keep) == (mark, True, keep)


def test_a_mark_behind_a_large_environment_is_found(track: Tracker) -> None:
    environ = {f"V{n}": "x" * 1000 for n in range(60)} | {"CORRAL_OWNER": "own-1"}
    assert row_that_sleeps(track, env=environ).mark == "own-1"


def test_an_environment_that_is_no_utf8_is_read(track: Tracker) -> None:
    environ = {b"A": b"\xff\xfe", b"CORRAL_OWNER": b"own-\xff", b"Z": b"\x80"}
    assert row_that_sleeps(track, env=environ).mark == "own-\udcff"


def test_a_title_written_over_the_environment_leaves_the_mark_uncertain(track: Tracker) -> None:
    source = """
        with open("/proc/self/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        begin, end = int(fields[47]), int(fields[48])  # env_start and env_end
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, b"worker: idle", 12)
        say(); sleep()
    """
    child, _ = started(track, program(source), env={"CORRAL_OWNER": "own-1"})
    row = row_of(child.pid)
    assert (row.mark, row.mark_readable) == (None, False)


def test_a_name_cannot_forge_a_row(track: Tracker) -> None:
    source = """
        with open("/proc/self/comm", "w") as file:
            file.write("a) R 1 1 (")
        say(); sleep()
    """
    child, _ = started(track, program(source))
    row = row_of(child.pid)
    assert row.comm == "a) R 1 1 ("
    assert (row.ppid, row.state in "RS") == (os.getpid(), True)


def test_arguments_come_back_byte_for_byte(track: Tracker) -> None:
    hostile = [b"", b" a  b ", b"line\nbreak", b"\xff\xfe", b"--config-file=/x y", b"$(id)", b""]
    argv = [*program("say(); sleep()"), *map(os.fsdecode, hostile)]
    child, _ = started(track, argv)
    found = row_of(child.pid).argv
    assert found is not None
    assert [*found] == argv


def test_a_program_whose_file_was_replaced_keeps_its_name(
    track: Tracker, private_root: Path
) -> None:
    tool = private_root / "tool"
    shutil.copy(shutil.which("sleep") or "", tool)
    child = track.spawn([tool, "600"])
    eventually(lambda: row_of(child.pid).exe == str(tool))
    tool.unlink()
    assert row_of(child.pid).exe == str(tool)


def test_a_zombie_is_dead_and_is_not_found(track: Tracker) -> None:
    child = track.spawn(["true"])
    row = row_once(child.pid, lambda row: row.dead)
    assert (row.state, row.argv, row.mark) == ("Z", (), None)
    table = procfs.snapshot()
    assert table.find(table.identity(row)) is None


def test_a_process_whose_first_thread_ended_is_alive(track: Tracker) -> None:
    source = """
        threading.Thread(target=lambda: (say(), sleep())).start()
        exit_thread = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
        libc.syscall(exit_thread, 0)
    """
    child, _ = started(track, program(source))
    row = row_once(child.pid, lambda row: row.state in "Zz")
    assert (row.dead, row.argv, row.mark_readable) == (False, None, False)


def test_a_process_that_ends_midway_has_no_row(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    directory = os.open(f"/proc/{child.pid}", procfs._DIRECTORY)
    try:
        found = procfs.read_row(directory, child.pid, os.geteuid())
        assert found is not None
        assert found.pid == child.pid
        child.kill()
        child.wait()
        assert procfs.read_row(directory, child.pid, os.geteuid()) is None
        with pytest.raises(ProcessLookupError):  # and not FileNotFoundError, as one would expect
            read_all("cmdline", directory)
    finally:
        os.close(directory)
    assert procstat.read_stat(child.pid) is None


def test_snapshots_bear_processes_that_come_and_go(track: Tracker) -> None:
    source = """
        say()
        while True:
            os.waitpid(child(lambda: None), 0)
    """
    started(track, program(source))
    for _ in range(20):
        assert os.getpid() in procfs.snapshot().rows


@needs_root
def test_another_users_environment_is_not_looked_at(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"], user=65534, env={"CORRAL_OWNER": "own-1"})
    row = row_once(child.pid, lambda row: row.comm == "sleep")
    assert (row.uid, row.mark, row.mark_readable) == (65534, None, False)
    assert (row.exe, row.namespace) == ("", None)
    assert row.argv == ("sleep", "600")


@needs_root
def test_a_process_of_ones_own_that_may_not_be_read_is_uncertain() -> None:
    source = """
        from corral.kernel import procfs
        become_nobody()             # leaves this process, and what it forks, unreadable
        pid = child(sleep)
        try:
            row = procfs.snapshot().rows[pid]
            say([row.uid, row.mark, row.mark_readable, row.exe, row.namespace])
        finally:
            os.kill(pid, signal.SIGKILL)
    """
    found = said(program(source), env=dict(os.environ, CORRAL_OWNER="own-1"))
    assert found == [65534, None, False, "", None]


def test_kernel_threads_have_no_arguments_and_no_mark() -> None:
    rows = [row for row in procfs.snapshot().rows.values() if row.ppid == 2]
    if not rows:
        pytest.skip("no kernel threads can be seen in this pid namespace")
    assert all(row.argv == () and row.mark is None and row.mark_readable for row in rows)


def test_a_process_in_a_namespace_of_its_own_shows_it(track: Tracker) -> None:
    require_engine("namespaces")
    child, _ = started(track, in_pid_namespace(program("say(); sleep()")))
    table = procfs.snapshot()
    inner = [row for row in table.rows.values() if row.ppid == child.pid]
    assert [row.namespace not in {None, table.pid_namespace} for row in inner] == [True]


def test_the_proc_of_another_namespace_is_a_failed_look() -> None:
    require_engine("namespaces")
    source = """
        from corral.errors import EnumerationError
        from corral.kernel import procfs, procstat
        failed = []
        for look in procfs.snapshot, procstat.own_namespace:
            try:
                look()
            except EnumerationError as error:
                failed.append([error.backend, error.message])
        say(failed)
    """
    message = "/proc belongs to another pid namespace than this process"
    assert said(["unshare", "-pf", *program(source)]) == [["process", message]] * 2


@pytest.mark.parametrize(
    "hide", ["mount -t tmpfs none /proc", "mount --bind /proc/sys /proc", "mount --bind /sys /proc"]
)
def test_a_machine_without_proc_is_a_failed_look(hide: str) -> None:
    require_engine("namespaces")
    source = """
        from corral.errors import EnumerationError
        from corral.kernel import procfs, procstat
        failed = []
        for look in procfs.snapshot, lambda: procstat.read_stat(os.getpid()):
            try:
                failed.append(look())
            except EnumerationError as error:
                failed.append(error.backend)
        say(failed)
    """
    hidden = ["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *program(source)]
    assert said(hidden) == ["process", None]


@pytest.mark.parametrize("option", ["hidepid=1", "hidepid=2"])
def test_where_others_are_hidden_ones_own_are_still_seen(option: str) -> None:
    require_engine("namespaces")
    source = """
        from corral.kernel import procfs
        become_nobody()
        own = subprocess.Popen(["sleep", "600"], env={"CORRAL_OWNER": "own-1"})
        try:
            while not (row := procfs.snapshot().rows.get(own.pid)) or row.mark is None:
                pass
            say([row.mark, 1 in procfs.snapshot().rows])
        finally:
            own.kill()
            own.wait()
    """
    mounted = f'mount -t proc -o {option} none /proc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", mounted, "sh", *program(source)]
    assert said(argv) == ["own-1", False]


def test_out_of_descriptors_is_a_failed_look() -> None:
    source = """
        import resource
        from corral.errors import EnumerationError
        from corral.kernel import procfs
        procfs.snapshot()
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        try:
            procfs.snapshot()
        except EnumerationError as error:
            say(error.backend)
    """
    assert said(program(source)) == "process"


def test_the_machine_is_looked_at_within_its_budget(track: Tracker) -> None:
    for _ in range(30):
        track.spawn(["sleep", "600"])
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        size = len(procfs.snapshot().rows)
        times.append((time.perf_counter() - begin) / size)
    assert min(times) < 200e-6  # 40 us each on a quiet machine


def test_subprocess_children_are_seen_with_their_parents(track: Tracker) -> None:
    source = "say(subprocess.Popen(['sleep', '600']).pid); sleep()"
    parent, pid = started(track, program(source))
    track.pid(pid)
    assert row_of(pid).ppid == parent.pid


def test_a_stat_that_cannot_be_read_is_a_failed_look() -> None:
    require_engine("namespaces")
    source = """
        from corral.errors import EnumerationError
        from corral.kernel import procfs, procstat
        become_nobody()
        try:
            procstat.read_stat(1)
        except EnumerationError as error:
            say(error.message)
    """
    mounted = 'mount -t proc -o hidepid=1 none /proc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", mounted, "sh", *program(source)]
    assert "process 1 cannot be read" in said(argv)


def test_who_stands_above_a_process_is_told_without_the_table(track: Tracker) -> None:
    child, grandchild = started(
        track,
        program("""
            say(child(sleep))
            sleep()
        """),
    )
    track.pid(grandchild)
    above = procstat.lineage(grandchild)
    table = procfs.snapshot()
    assert [pid for pid, _ in above[:2]] == [child.pid, os.getpid()]
    assert all(table.rows[pid].start_ticks == ticks for pid, ticks in above)
    assert [row.pid for row in procfs.ancestors(grandchild)] == [pid for pid, _ in above]


def test_nobody_stands_above_a_process_that_is_gone(track: Tracker) -> None:
    child = track.spawn(["true"])
    child.wait()
    assert procstat.lineage(child.pid) == ()
