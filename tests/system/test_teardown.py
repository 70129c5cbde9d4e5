"""Taking down what a worker started, with real processes: exactly that, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral, pids, start
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

PY = sys.executable
SLEEP = (PY, "-c", "import signal; signal.pause()")
STUBBORN = (
    PY,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()",
)
# Says when it can be told to end, and that it was.
POLITE = (
    PY,
    "-c",
    """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (open("told", "w").close(), sys.exit()))
open("ready", "w").close()
while True: signal.pause()
""",
)
NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}


def _children(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    ppid = int(file.read().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if ppid == pid:
                found.append(int(name))
    return found


def _quiet(where: Path) -> None:
    """Nothing that carries a mark or a record is left."""
    seen = ask(where, "status", "--all")
    rows = [r for group in ("owned", "orphans", "unknown") for r in seen[group]]
    # Tests beside this one have registries of their own, whose owners are unknown to this one.
    owners = {session["owner"] for session in ask(where, "session", "list")["sessions"]}
    assert [r for r in rows if r["kind"] == "process" and r["owner"] in owners] == []


def test_a_reap_takes_what_was_started_and_leaves_a_stranger(
    git_repo: Path, track: Tracker
) -> None:
    stranger = track.spawn(SLEEP)
    pid = start(git_repo, *SLEEP, name="web")
    report = ask(git_repo, "reap")
    assert pid in pids(report["removed"])
    assert report["remaining"] == []
    assert not alive(pid)
    assert stranger.poll() is None
    _quiet(git_repo)


def test_a_second_reap_finds_nothing_to_do(git_repo: Path) -> None:
    start(git_repo, *SLEEP)
    ask(git_repo, "reap")
    report = ask(git_repo, "reap")
    assert report["removed"] == report["remaining"] == []


def test_a_dry_run_changes_nothing(git_repo: Path) -> None:
    pid = start(git_repo, *SLEEP)
    shown = ask(git_repo, "reap", "--dry-run")
    assert pid in pids(shown["would_remove"])
    assert alive(pid)


def test_a_process_that_ignores_term_is_killed(git_repo: Path) -> None:
    pid = start(git_repo, *STUBBORN)
    assert pid in pids(ask(git_repo, "reap")["removed"])
    assert not alive(pid)


def test_a_stopped_process_is_ended(git_repo: Path) -> None:
    pid = start(git_repo, *SLEEP)
    os.kill(pid, signal.SIGSTOP)
    assert pid in pids(ask(git_repo, "reap")["removed"])
    assert not alive(pid)


def test_a_stopped_process_is_told_before_it_is_killed(git_repo: Path) -> None:
    pid = start(git_repo, *POLITE)
    eventually((git_repo / "ready").exists)
    os.kill(pid, signal.SIGSTOP)
    assert pid in pids(ask(git_repo, "reap")["removed"])
    assert (git_repo / "told").exists()


TREE = """
import os, signal, sys, time
out = open(sys.argv[1], "a", buffering=1)
def leaf(new_session, wipe):
    if os.fork():
        return
    if new_session:
        os.setsid()
        if os.fork():
            os._exit(0)
    if wipe:
        report = (
            f"import os, signal; open({sys.argv[1]!r}, 'a').write(str(os.getpid()) + chr(10));"
            "signal.pause()"
        )
        os.execve(sys.executable, [sys.executable, "-c", report], {})
    out.write(f"{os.getpid()}\\n")
    while True:
        signal.pause()
leaf(False, False)
leaf(True, False)
leaf(True, True)
out.write(f"{os.getpid()}\\n")
while True:
    signal.pause()
"""


def test_children_in_other_sessions_and_with_wiped_environments_go_too(
    git_repo: Path, private_root: Path
) -> None:
    listed = private_root / "pids"
    start(git_repo, PY, "-c", TREE, str(listed))
    listed.touch()
    eventually(lambda: len(listed.read_text().split()) == 4)
    tree = [int(word) for word in listed.read_text().split()]
    report = ask(git_repo, "reap")
    assert report["remaining"] == []
    assert [p for p in tree if alive(p)] == []
    assert set(tree) <= pids(report["removed"])


FORKER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(30)
        os._exit(0)
    time.sleep(0.05)
"""


def test_a_process_that_forks_while_it_is_reaped_leaves_nothing(git_repo: Path) -> None:
    pid = start(git_repo, PY, "-c", FORKER)
    eventually(lambda: len(_children(pid)) >= 3)
    report = ask(git_repo, "reap")
    assert report["remaining"] == []
    assert not alive(pid)
    _quiet(git_repo)


HOPPER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(0.02)
"""


def test_a_process_that_changes_its_pid_all_the_time_is_caught(
    git_repo: Path, private_root: Path
) -> None:
    beat = private_root / "beat"
    words = ("run", "--detach", "--", "env", "-i", PY, "-c", HOPPER, str(beat))
    corral(git_repo, *words)
    eventually(lambda: beat.exists() and beat.read_text())

    def caught() -> bool:
        said = corral(git_repo, "reap", "--json", check=None)
        assert said.status in {0, 1}
        hopping = [p for p in [int(beat.read_text() or 0)] if p and alive(p)]
        rows = [*said.data["remaining"], *said.data["left"]]
        assert said.data["remaining"] == [] or said.status == 1
        assert not hopping or [r for r in rows if r["kind"] == "process"], "nothing was said of it"
        return not hopping

    eventually(caught, 40.0)


def test_a_daemon_started_by_a_script_that_returned_is_found(
    git_repo: Path, private_root: Path
) -> None:
    listed = private_root / "pid"
    daemon = f"import os,signal; open({str(listed)!r},'w').write(str(os.getpid())); signal.pause()"
    script = private_root / "start.sh"
    script.write_text(f'#!/bin/sh\nenv -i setsid {PY} -c "{daemon}" </dev/null >/dev/null 2>&1 &\n')
    script.chmod(0o755)
    corral(git_repo, "run", "--", str(script))
    pid = int(eventually(lambda: listed.exists() and listed.read_text()))
    assert alive(pid)
    assert pid in pids(ask(git_repo, "status")["owned"])
    assert pid in pids(ask(git_repo, "reap")["removed"])
    assert not alive(pid)


def test_a_tmux_server_from_a_marked_shell_is_left_with_its_panes(
    git_repo: Path, private_root: Path, track: Tracker
) -> None:
    socket = str(private_root / "tmux")
    if not any(os.access(f"{d}/tmux", os.X_OK) for d in os.get_exec_path()):
        pytest.skip("tmux is not installed")
    corral(git_repo, "run", "--", "tmux", "-S", socket, "new-session", "-d", *SLEEP)
    seen = ask(git_repo, "status")
    (server,) = [r for r in seen["shared"] if "tmux" in r["name"]]
    track.pid(int(server["id"]))
    (pane,) = _children(int(server["id"]))
    ask(git_repo, "reap")
    assert alive(int(server["id"]))
    assert alive(pane)


def test_a_look_alike_daemon_is_left(git_repo: Path, private_root: Path, track: Tracker) -> None:
    program = private_root / "dockerd"
    program.symlink_to(os.path.realpath(PY))
    pid = track.pid(start(git_repo, str(program), "-c", "import signal; signal.pause()"))
    report = ask(git_repo, "reap")
    assert pid not in pids(report["removed"])
    assert alive(pid)


def test_what_is_kept_is_left_until_it_is_no_longer_kept(git_repo: Path, track: Tracker) -> None:
    pid = track.pid(start(git_repo, *SLEEP, name="web"))
    corral(git_repo, "keep", f"process/{pid}")
    report = ask(git_repo, "reap")
    assert pid not in pids(report["removed"])
    assert alive(pid)
    assert pid in pids(ask(git_repo, "status")["kept"])
    corral(git_repo, "unkeep", f"process/{pid}")
    assert pid in pids(ask(git_repo, "reap")["removed"])


def test_what_a_kept_process_has_started_is_kept_with_it(git_repo: Path, track: Tracker) -> None:
    pid = track.pid(start(git_repo, "sh", "-c", "sleep 600; true"))
    child = track.pid(
        eventually(lambda: next((p for p in _children(pid) if p), 0), message="its child")
    )
    corral(git_repo, "keep", f"process/{pid}")
    assert not ask(git_repo, "reap")["removed"]
    assert alive(pid)
    assert alive(child)
    corral(git_repo, "unkeep", f"process/{pid}")
    assert {pid, child} <= pids(ask(git_repo, "reap")["removed"])


def test_what_is_kept_while_a_reap_waits_for_it_is_left(git_repo: Path, track: Tracker) -> None:
    pid = track.pid(start(git_repo, *STUBBORN, name="web"))
    eventually(lambda: _ignores_term(pid))
    reap = track.spawn([*COMMAND, "reap", "--json"], cwd=git_repo, stdout=-1)
    # The first TERM has come, and the reap waits for what ignores it.
    eventually(lambda: _is_waited_for(reap.pid, pid), 30)
    corral(git_repo, "keep", f"process/{pid}")
    reap.communicate(timeout=60)
    assert alive(pid)
    assert pid in pids(ask(git_repo, "status")["kept"])
    corral(git_repo, "unkeep", f"process/{pid}")
    assert pid in pids(ask(git_repo, "reap")["removed"])


def _is_waited_for(reaper: int, pid: int) -> bool:
    """Whether the reaper holds a pidfd of the process, as it does from its first signal on."""
    for descriptor in os.listdir(f"/proc/{reaper}/fdinfo"):
        with (
            suppress(FileNotFoundError),
            open(f"/proc/{reaper}/fdinfo/{descriptor}", encoding="ascii") as file,
        ):
            if f"Pid:\t{pid}\n" in file.read():
                return True
    return False


def _ignores_term(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        ignored = next(line for line in file if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & 1 << signal.SIGTERM - 1)


def test_a_process_that_asks_to_be_kept_is_kept(git_repo: Path, track: Tracker) -> None:
    pid = track.pid(start(git_repo, "env", "CORRAL_KEEP=1", *SLEEP))
    eventually(lambda: pid in pids(ask(git_repo, "status")["kept"]))
    ask(git_repo, "reap")
    assert alive(pid)


def _crashed(where: Path, track: Tracker, session: str = "agent") -> int:
    """A worker that was killed and left one process behind; its pid."""
    worker = track.spawn(SLEEP)
    corral(where, "session", "start", "--session", session, "--anchor", str(worker.pid))
    pid = track.pid(start(where, *SLEEP, env={"CORRAL_SESSION": session}))
    worker.kill()
    worker.wait()
    return pid


def test_an_orphan_of_a_crash_is_shown_and_cleaned_up(git_repo: Path, track: Tracker) -> None:
    pid = _crashed(git_repo, track)
    assert pid in pids(ask(git_repo, "status", env=NO_GRACE)["orphans"])
    shown = ask(git_repo, "cleanup", env=NO_GRACE)
    assert alive(pid), "without a terminal and without --yes it only shows"
    assert pid in pids(shown["would_remove"])
    report = ask(git_repo, "cleanup", "--yes", env=NO_GRACE)
    assert pid in pids(report["removed"])
    assert not alive(pid)
    events = ask(git_repo, "events")["events"]
    assert any(e["action"] == "removed" and e["resource"] == str(pid) for e in events)


def test_within_the_grace_nothing_is_taken(git_repo: Path, track: Tracker) -> None:
    pid = _crashed(git_repo, track)
    report = ask(git_repo, "cleanup", "--yes")
    assert report["removed"] == []
    assert pid in pids(report["left"])
    assert alive(pid)


def test_an_age_holds_a_cleanup_back_from_what_is_younger(git_repo: Path, track: Tracker) -> None:
    pid = _crashed(git_repo, track)
    held = ask(git_repo, "cleanup", "--yes", "--older-than", "1h", env=NO_GRACE)
    assert held["removed"] == []
    assert {row["reason"] for row in held["left"] if row["id"] == str(pid)} == {
        "younger than was asked for"
    }
    assert alive(pid)
    taken = ask(git_repo, "cleanup", "--yes", "--older-than", "0s", env=NO_GRACE)
    assert pid in pids(taken["removed"])


def test_a_live_owner_loses_nothing_to_a_cleanup(git_repo: Path, track: Tracker) -> None:
    worker = track.spawn(SLEEP)
    corral(git_repo, "session", "start", "--session", "live", "--anchor", str(worker.pid))
    pid = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "live"}))
    assert ask(git_repo, "cleanup", "--yes", env=NO_GRACE)["removed"] == []
    assert alive(pid)


def test_what_appeared_after_the_preview_is_not_touched(
    git_repo: Path, track: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corral.api import cleanup, prepare_cleanup

    monkeypatch.chdir(git_repo)
    monkeypatch.setenv("CORRAL_KEEPER_GRACE", "0")
    first = _crashed(git_repo, track, "one")
    plan = prepare_cleanup()
    second = _crashed(git_repo, track, "two")
    report = cleanup(plan)
    assert not alive(first)
    assert alive(second)
    assert second not in {int(j.sighting.id) for j in report.removed}


def test_preparing_a_cleanup_writes_nothing(
    git_repo: Path, track: Tracker, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corral.api import prepare_cleanup

    monkeypatch.chdir(git_repo)
    _crashed(git_repo, track)
    eventually(lambda: "'[" in _epochs(state_dir), message="the supervisor notes the end")
    before = _content(state_dir)
    prepare_cleanup()
    assert _content(state_dir) == before


def _epochs(state_dir: Path) -> str:
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        return repr(conn.execute('SELECT "end" FROM epoch').fetchall())


def _content(state_dir: Path) -> list[str]:
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        return list(conn.iterdump())


def test_two_reapers_at_once_do_the_work_once(git_repo: Path, track: Tracker) -> None:
    started = [start(git_repo, *STUBBORN) for _ in range(3)]
    both = [
        track.spawn([*COMMAND, "reap", "--json"], cwd=git_repo, stdout=-1, text=True)
        for _ in range(2)
    ]
    reports = [json.loads(p.communicate(timeout=60)[0])["data"] for p in both]
    assert [p.returncode for p in both] == [0, 0]
    removed = [pid for report in reports for pid in pids(report["removed"])]
    assert sorted(removed) == sorted(started)


@pytest.mark.parametrize("after", [0.02, 0.06, 0.1, 0.15, 0.25, 0.5])
def test_a_reaper_that_is_killed_midway_is_finished_by_the_next(
    git_repo: Path, track: Tracker, after: float
) -> None:
    started = [start(git_repo, *STUBBORN), start(git_repo, *SLEEP)]
    reaper = track.spawn([*COMMAND, "reap"], cwd=git_repo, stdout=-1, stderr=-1)
    end = time.monotonic() + after
    while time.monotonic() < end and reaper.poll() is None:
        time.sleep(0.005)
    reaper.kill()
    reaper.wait()
    ask(git_repo, "reap")
    assert [p for p in started if alive(p)] == []
    _quiet(git_repo)


def test_a_torn_record_disables_nothing(git_repo: Path, state_dir: Path) -> None:
    pid = start(git_repo, *SLEEP)
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        for number, torn in enumerate(("", "[]", "{", '{"pid": 1}', '[["pid", "x"]]', "null")):
            conn.execute(
                "INSERT INTO resource VALUES (?, 'process', 'process', 'service', 'x', 'own-x', "
                "NULL, NULL, 'live', ?, NULL, 0, '{}')",
                (f"torn-{number}", torn),
            )
        conn.execute(
            "INSERT INTO epoch (owner, agent, opened_at, boot_id, anchor) "
            "VALUES ('own-x', 'a', 0, 'b', '[')"
        )
        conn.execute("INSERT INTO claim VALUES ('?', 's', 'v', 'n', NULL, NULL, 'w', 0, '')")
    seen = ask(git_repo, "status")
    assert pid in pids(seen["owned"])
    assert len([r for r in seen["unknown"] if r["state"] == "unreadable"]) >= 4
    assert pid in pids(ask(git_repo, "reap")["removed"])


HOSTILE = ("../../etc", "a b", "x\ny", "日本", "---", "'; rm -rf / #", "$(id)", "X" * 300, "\t")


@pytest.mark.parametrize("session", HOSTILE[:-1])
def test_a_hostile_session_id_is_data(git_repo: Path, session: str) -> None:
    pid = start(git_repo, *SLEEP, env={"CORRAL_SESSION": session})
    assert ask(git_repo, "status", "--session", session)["session"] == session
    assert pid in pids(ask(git_repo, "reap", f"--session={session}")["removed"])
    assert not alive(pid)


@pytest.mark.parametrize("session", ["", " ", "\t\n"])
def test_an_empty_session_id_owns_nothing(git_repo: Path, track: Tracker, session: str) -> None:
    pid = track.pid(start(git_repo, *SLEEP))
    said = corral(git_repo, "reap", "--session", session, "--json", check=2)
    assert said.document["result"] == "failed"
    assert said.document["problems"][0]["remedy"]
    corral(git_repo, "reap", env={"CORRAL_SESSION": session}, check=2)
    assert alive(pid)


def test_one_owner_does_not_reap_another(git_repo: Path, track: Tracker) -> None:
    mine = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "one"}))
    other = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "one-more"}))
    report = ask(git_repo, "reap", "--session", "one")
    assert pids(report["removed"]) == {mine}
    assert alive(other)


def test_a_foreign_live_session_is_reaped_by_force_only(git_repo: Path, track: Tracker) -> None:
    worker = track.spawn(SLEEP)
    corral(git_repo, "session", "start", "--session", "far", "--anchor", str(worker.pid))
    pid = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "far"}))
    said = corral(git_repo, "reap", "--session", "far", "--json", check=4)
    assert said.document["problems"][0]["code"] == "foreign"
    assert alive(pid)
    assert pid in pids(ask(git_repo, "reap", "--session", "far", "--force")["removed"])
    assert worker.poll() is None


def test_down_is_refused_while_another_owner_lives_there(git_repo: Path, track: Tracker) -> None:
    corral(git_repo, "up", "--port", "web")
    pid = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "other"}))
    corral(git_repo, "down", "--json", check=4)
    assert alive(pid)
    corral(git_repo, "down", "--force")
    assert not alive(pid)


def test_down_means_the_current_directory_never_an_inherited_environment(
    git_repo: Path, worktree: Any, track: Tracker
) -> None:
    other = worktree("other")
    pid = track.pid(start(git_repo, *SLEEP))
    corral(other, "up", "--port", "web")
    owner = ask(git_repo, "status")["owner"]
    corral(other, "down", env={"CORRAL_OWNER": owner})
    assert alive(pid)


def test_an_adopted_process_is_the_owners(git_repo: Path, track: Tracker) -> None:
    found = track.spawn(SLEEP)
    corral(git_repo, "adopt", "process", str(found.pid), "--name", "old")
    assert found.pid in pids(ask(git_repo, "reap")["removed"])
    assert found.wait(5) is not None


@pytest.mark.parametrize("pid", ["1", "0", "-1", "x", "999999999", "mine"])
def test_what_must_not_be_touched_is_not_adopted(git_repo: Path, pid: str) -> None:
    # The test's own process stands above the command that is told to adopt it.
    pid = str(os.getpid()) if pid == "mine" else pid
    said = corral(git_repo, "adopt", "--json", "--", "process", pid, check=None)
    assert said.status in {2, 4}
    assert ask(git_repo, "reap")["removed"] == []


def test_a_session_end_takes_its_things_and_not_the_persons(git_repo: Path, track: Tracker) -> None:
    persons = track.pid(start(git_repo, *SLEEP))
    corral(git_repo, "session", "start", "--session", "job")
    jobs = track.pid(start(git_repo, *SLEEP, env={"CORRAL_SESSION": "job"}))
    report = ask(git_repo, "session", "end", "--session", "job")
    assert pids(report["removed"]) == {jobs}
    assert alive(persons)


def test_cleanup_of_a_removed_worktree_gives_its_claims_back(
    git_repo: Path, worktree: Any, track: Tracker
) -> None:
    tree = worktree("gone")
    corral(tree, "up", "--port", "web")
    port = ask(tree, "status")["environment"]["ports"]["web"]
    pid = track.pid(start(tree, *SLEEP))
    shutil.rmtree(tree)
    assert ask(git_repo, "cleanup", "--yes")["removed"] == [], "the entry is still there"
    assert alive(pid)
    subprocess.run(["git", "worktree", "prune"], cwd=git_repo, check=True)
    report = ask(git_repo, "cleanup", "--yes")
    assert pid in pids(report["removed"])
    assert port not in [p["port"] for p in ask(git_repo, "port", "list", "--all")["ports"]]


def test_a_moved_and_pruned_worktree_with_a_live_server_is_not_gone(
    git_repo: Path, worktree: Any, private_root: Path, track: Tracker
) -> None:
    tree = worktree("before")
    corral(tree, "up", "--port", "web")
    pid = track.pid(start(tree, *SLEEP))
    tree.rename(private_root / "after")
    subprocess.run(["git", "worktree", "prune"], cwd=git_repo, check=True)
    assert ask(git_repo, "cleanup", "--yes")["removed"] == []
    assert alive(pid)


def test_down_keeps_the_environment_of_what_it_left(git_repo: Path, track: Tracker) -> None:
    up = ask(git_repo, "up", "--port", "web")
    pid = track.pid(start(git_repo, *SLEEP, name="web"))
    corral(git_repo, "keep", f"process/{pid}")
    said = corral(git_repo, "down", "--json")
    assert said.document["problems"][0]["code"] == "stays"
    assert ask(git_repo, "status")["environment"] == up["environment"]
    corral(git_repo, "unkeep", f"process/{pid}")
    assert pid in pids(ask(git_repo, "down")["removed"])
    assert ask(git_repo, "status")["environment"] is None


def test_down_and_run_at_once_leave_nothing_that_nobody_knows(
    git_repo: Path, track: Tracker
) -> None:
    racing = []
    for number in range(8):
        words = ["run", "--detach", "--name", f"s{number}", "--", *SLEEP]
        racing.append(track.spawn([*COMMAND, *words], cwd=git_repo, stdout=-1, stderr=-1))
        racing.append(track.spawn([*COMMAND, "down"], cwd=git_repo, stdout=-1, stderr=-1))
    for process in racing:
        process.communicate(timeout=120)
    corral(git_repo, "down")
    _quiet(git_repo)
    assert ask(git_repo, "session", "list")["sessions"] == []


def test_a_service_of_another_registry_is_left_with_its_supervisor(
    git_repo: Path, private_root: Path, track: Tracker
) -> None:
    other = str(private_root / "state2")
    words = [*COMMAND, "run", "--detach", "--name", "inner", "--json", "--", *SLEEP]
    line = " ".join(f"'{word}'" for word in words)
    inner = f"CORRAL_STATE_DIR={os.environ['CORRAL_STATE_DIR']} {line}"
    said = corral(git_repo, "run", "--", "sh", "-c", inner, env={"CORRAL_STATE_DIR": other})
    pid = track.pid(int(json.loads(said.out)["data"]["pid"]))
    corral(git_repo, "reap", env={"CORRAL_STATE_DIR": other})
    assert alive(pid)
    assert pid in pids(ask(git_repo, "reap")["removed"])


def test_a_record_without_an_identity_disables_nothing(git_repo: Path, state_dir: Path) -> None:
    good = start(git_repo, *SLEEP, name="good")
    bad = start(git_repo, *SLEEP, name="bad")
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("UPDATE resource SET identity='[]' WHERE name='bad' AND role='service'")
    seen = ask(git_repo, "status")
    assert good in pids(seen["owned"])
    assert any(row["state"] == "unreadable" for row in seen["unknown"])
    corral(git_repo, "run", "--detach", "--name", "bad", "--", *SLEEP)
    ask(git_repo, "reap")
    assert not alive(good)
    assert not alive(bad)


def test_a_worktree_that_was_only_deleted_is_named_with_what_to_do(
    git_repo: Path, worktree: Callable[[str], Path], track: Tracker
) -> None:
    tree = worktree("tree")
    corral(tree, "up", "--port", "web")
    pid = track.pid(start(tree, *SLEEP, name="web"))
    shutil.rmtree(tree)
    for words in (["status"], ["cleanup", "--dry-run"], ["cleanup", "--yes"]):
        (problem,) = corral(git_repo, *words, "--json").document["problems"]
        assert (problem["code"], problem["message"].split()[0]) == ("missing-directory", str(tree))
        assert "git worktree prune" in problem["remedy"]
        assert "git worktree prune" in corral(git_repo, *words).err
    assert alive(pid)
    subprocess.run(["git", "worktree", "prune"], cwd=git_repo, check=True)
    assert pid in pids(ask(git_repo, "cleanup", "--yes")["removed"])
    assert corral(git_repo, "status", "--json").document["problems"] == []
