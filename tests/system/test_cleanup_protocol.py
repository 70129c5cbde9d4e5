"""The two steps of a cleanup: a plan that is shown, and an act that the plan alone does not cover.

A test for each promise: what was approved is looked at anew, only approved and still found goes,
identities are pinned before a signal, a failed enumeration aborts its backend only, what stays is
reported, and what is being created is nobody's orphan.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import corral
from corral import EnumerationError, HeldError, lifecycle_lock, prepare_cleanup
from corral.contracts import RemovalContext
from corral.kernel import identity
from corral.model.report import Plan
from corral.model.resource import Kind
from corral.services.looking import judge_all
from corral.services.view import look
from support.backend_kit import worker_in
from support.benches import AppleBench
from support.command import COMMAND, alive
from support.engines import require_engine
from support.microvms import Machine, crashed, run_directories, stand_in
from support.programs import in_pid_namespace, program, said
from support.terminal import Terminal
from support.waiting import eventually

if TYPE_CHECKING:
    from corral.model.report import Report
    from corral.model.resource import Judgement
    from support.processes import Tracker

NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}


@pytest.fixture
def machine(private_root: Path, monkeypatch: pytest.MonkeyPatch, git_repo: Path) -> Machine:
    """Stand-in microVMs; the Python API acts in the repository and knows no grace."""
    programs = private_root / "programs"
    stand_in(programs)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CORRAL_KEEPER_GRACE", "0")
    monkeypatch.chdir(git_repo)
    config = programs / "vm.json"
    config.write_text("{}")
    return Machine(config)


def kinds(judgements: tuple[Judgement, ...]) -> list[str]:
    return sorted(j.sighting.kind.value for j in judgements)


def microvms(plan: Plan | Report) -> set[int]:
    judgements = plan.targets if isinstance(plan, Plan) else plan.removed
    seen = [j.sighting for j in judgements if j.sighting.kind is Kind.MICROVM]
    return {int(dict(sighting.identity)["pid"]) for sighting in seen}


def test_preparing_changes_nothing_and_names_what_would_go(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    pid = crashed(git_repo, machine, track)
    plan = prepare_cleanup(backend_names=["firecracker"])
    assert kinds(plan.targets) == ["directory", "microvm"]
    assert microvms(plan) == {pid}
    assert not plan.empty
    assert all(j.sighting.identity and j.reason for j in plan.targets)
    assert alive(pid)
    assert len(run_directories(state_dir)) == 1


def test_without_orphans_the_plan_is_empty_and_acting_does_nothing(
    git_repo: Path, machine: Machine
) -> None:
    del git_repo, machine
    plan = prepare_cleanup()
    assert plan.empty
    report = corral.cleanup(plan)
    assert report.removed == report.remaining == ()


def test_a_confirmation_authorizes_a_fresh_look_not_the_shown_identities(
    git_repo: Path, machine: Machine, track: Tracker
) -> None:
    gone, stays = (crashed(git_repo, machine, track, session) for session in ("one", "two"))
    plan = prepare_cleanup()
    assert microvms(plan) == {gone, stays}
    os.kill(gone, signal.SIGKILL)
    eventually(lambda: not alive(gone))
    report = corral.cleanup(plan)
    assert microvms(report) == {stays}
    assert not alive(stays)
    assert report.remaining == ()


def test_a_person_who_says_yes_gets_a_fresh_look(
    git_repo: Path, machine: Machine, track: Tracker
) -> None:
    first = crashed(git_repo, machine, track)
    argv = [*COMMAND, "cleanup", "--backend", "firecracker"]
    with Terminal(track, argv, git_repo, **NO_GRACE) as terminal:
        terminal.expect("take these down")
        second = crashed(git_repo, machine, track, "two")
        terminal.type("y\n")
        assert terminal.process.wait(30) == 0
    assert not alive(first)
    assert alive(second), "it was not there to be approved"


def test_a_run_directory_that_was_made_again_is_not_the_approved_one(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    pid = crashed(git_repo, machine, track)
    (directory,) = run_directories(state_dir)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(pid))
    plan = prepare_cleanup(backend_names=["firecracker"])
    assert kinds(plan.targets) == ["directory"]
    directory.rename(state_dir / "aside")
    directory.mkdir()
    (directory / "rootfs.ext4").write_text("somebody else's")
    report = corral.cleanup(plan)
    assert report.removed == ()
    assert (directory / "rootfs.ext4").exists()


_RECYCLED = """
from corral import cleanup, prepare_cleanup
from support.microvms import Machine, crashed
from support.processes import Tracker
from pathlib import Path

os.chdir(WHERE)
pid = crashed(Path(WHERE), Machine(Path(CONFIG)), Tracker())
plan = prepare_cleanup()
end_of = os.pidfd_open(pid)
for victim in [int(j.sighting.id) for j in plan.judgements if j.sighting.state == "supervisor"]:
    os.kill(victim, signal.SIGKILL)
signal.pidfd_send_signal(end_of, signal.SIGKILL)
while os.path.exists(f"/proc/{pid}"):
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
    time.sleep(0.005)
stranger = reborn(pid, sleep)
report = cleanup(plan)
lives = os.waitpid(stranger, os.WNOHANG) == (0, 0)
kinds = sorted(j.sighting.kind.value for j in report.removed)
end(stranger)
say({"same": stranger == pid, "lives": lives, "removed": kinds})
"""


def test_a_recycled_pid_is_not_signalled_between_preview_and_approval(
    git_repo: Path, machine: Machine
) -> None:
    require_engine("namespaces")
    tests = str(Path(__file__).parents[1])
    head = f"WHERE, CONFIG = {str(git_repo)!r}, {str(machine.config)!r}\n"
    env = {**os.environ, "PYTHONPATH": tests}
    told = said(in_pid_namespace(program(head + _RECYCLED)), env=env)
    assert told["same"], "the kernel did not give the pid again"
    assert told["lives"]
    assert told["removed"] == ["directory"]


_CHANGING = """
import os, signal
def become(*_):
    os.execv("/bin/sleep", ["sleep", "600"])
signal.signal(signal.SIGUSR1, become)
signal.pause()
"""


def test_what_is_no_microvm_any_more_once_it_is_pinned_is_left(
    private_root: Path, track: Tracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same process with another program in it: its identity alone would not tell."""
    from corral.backends.firecracker import FirecrackerBackend
    from corral.services.ending import Subject, reap_job
    from corral.services.environments import require
    from corral.services.microvm_starts import make_directory
    from corral.services.owners import ensure_acting

    del monkeypatch
    worker = worker_in(private_root / "kit", "s1")
    environment = require(worker.context)
    acting = ensure_acting(worker.context, environment)
    made = make_directory(worker.context, environment, acting)
    script = f"exec -a firecracker {shlex.quote(sys.executable)} -S -c {shlex.quote(_CHANGING)}"
    argv = ["bash", "-c", f'{script} --config-file "$0"', f"{made.path}/vm.json"]
    process = track.spawn(argv)
    eventually(lambda: b"config-file" in Path(f"/proc/{process.pid}/cmdline").read_bytes()[-200:])
    backend, view = FirecrackerBackend(), look(worker.context)
    job = reap_job(Subject(worker.owner, worker.session, known=True))
    eventually(lambda: backend.observe(view).sightings)
    (target,) = [
        j
        for j in judge_all([backend.observe(view)], view, job.request)
        if j.sighting.kind.value == "microvm"
    ]
    before = identity.identify(process.pid)
    eventually(lambda: _caught(process.pid))
    process.send_signal(signal.SIGUSR1)
    eventually(lambda: b"config" not in Path(f"/proc/{process.pid}/cmdline").read_bytes())
    assert identity.identify(process.pid).matches(before), "it is the same process"
    removal = RemovalContext(view, lambda _: "", time.monotonic() + 10)
    (outcome,) = backend.remove([target], removal)
    assert outcome.result == "left"
    assert "no microVM of corral's any more" in outcome.reason
    assert process.poll() is None


def _caught(pid: int) -> bool:
    """Whether the process catches SIGUSR1 by now."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1)


def test_a_pid_that_is_gone_is_no_error(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    pid = crashed(git_repo, machine, track)
    plan = prepare_cleanup()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(pid))
    report = corral.cleanup(plan)
    assert report.remaining == ()
    assert run_directories(state_dir) == []


def test_an_enumeration_that_fails_aborts_its_backend_only(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    vm = crashed(git_repo, machine, track)
    worker = track.spawn(["sleep", "600"])
    subprocess.run(
        [*COMMAND, "session", "start", "--session", "two", "--anchor", str(worker.pid)],
        cwd=git_repo,
        check=True,
        capture_output=True,
    )
    env = {**os.environ, "CORRAL_SESSION": "two"}
    argv = [*COMMAND, "run", "--detach", "--json", "--", "sleep", "600"]
    done = subprocess.run(argv, cwd=git_repo, env=env, check=True, capture_output=True)
    process = track.pid(int(json.loads(done.stdout)["data"]["pid"]))
    worker.kill()
    worker.wait()
    plan = prepare_cleanup()
    root = state_dir / "run"
    root.rename(state_dir / "aside")
    root.write_text("no directory")
    report = corral.cleanup(plan)
    assert alive(vm)
    assert not alive(process), "the other backend went on"
    (failed,) = [b for b in report.backends if b.state.value == "failed"]
    assert failed.name == "firecracker"
    assert "cannot be listed" in failed.detail
    root.unlink()
    (state_dir / "aside").rename(root)


def test_a_failed_enumeration_is_an_error_with_the_tools_own_words(
    private_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = AppleBench("new", private_root / "apple", monkeypatch)
    worker = worker_in(private_root / "kit", "s1")
    backend, view = bench.backend(worker), look(worker.context)
    bench.break_look("fail")
    with pytest.raises(EnumerationError, match="XPC connection error"):
        backend.observe(view)
    assert issubclass(EnumerationError, corral.CorralError)


def test_a_run_directory_that_cannot_be_removed_is_reported(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    pid = crashed(git_repo, machine, track)
    (directory,) = run_directories(state_dir)
    stuck = directory / "rootfs"
    stuck.mkdir()
    (stuck / "file").write_text("x")
    clean = [*COMMAND, "cleanup", "--yes", "--json"]
    if os.geteuid() == 0:
        script = f"mount -t tmpfs none {shlex.quote(str(stuck))} && exec {shlex.join(clean)}"
        clean = ["unshare", "--mount", "sh", "-c", script]
    else:
        stuck.chmod(0o500)
    done = subprocess.run(clean, cwd=git_repo, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    stuck.chmod(0o700)
    assert done.returncode == 1
    assert document["result"] == "partial"
    assert not alive(pid)
    (remaining,) = document["data"]["remaining"]
    assert remaining["id"] == str(directory)
    assert "rootfs" in remaining["reason"]
    assert document["problems"]


def test_while_a_creation_holds_the_lock_no_cleanup_acts(
    git_repo: Path, machine: Machine, track: Tracker
) -> None:
    pid = crashed(git_repo, machine, track)
    plan = prepare_cleanup()
    with lifecycle_lock.hold(what="launch"):
        cleaner = track.spawn([*COMMAND, "cleanup", "--yes"], cwd=git_repo, stdout=-1, stderr=-1)
        eventually(lambda: _waits_for_a_lock(cleaner.pid))
        assert alive(pid)
        with pytest.raises(HeldError, match="lifecycle lock"), lifecycle_lock.hold(timeout=0.1):
            raise AssertionError("two held it")
    assert cleaner.wait(30) == 0
    assert not alive(pid)
    assert corral.cleanup(plan).removed == ()


def _waits_for_a_lock(pid: int) -> bool:
    """Whether the process has the lock's file open, which it opens to wait for it."""
    try:
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(name.endswith("/lifecycle.lock") for name in names)


def test_a_run_directory_is_made_under_the_lock(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    del machine
    maker = "from corral import Environment; print(Environment.open().microvm_directory())"
    with lifecycle_lock.hold(what="cleanup"):
        process = track.spawn([sys.executable, "-c", maker], cwd=git_repo, stdout=-1, text=True)
        eventually(lambda: _waits_for_a_lock(process.pid))
        assert run_directories(state_dir) == []
    assert process.communicate(timeout=30)[0].strip() == str(run_directories(state_dir)[0])


def test_what_is_made_but_does_not_run_yet_is_no_orphan(
    git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
) -> None:
    del machine
    program_ = (
        "import sys; from corral import Environment\n"
        "print(Environment.open(session='s').microvm_directory(), flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", program_]
    maker = track.spawn(argv, cwd=git_repo, stdout=-1, stdin=-1, text=True)
    assert maker.stdout is not None
    directory = Path(maker.stdout.readline().strip())
    ended = [*COMMAND, "session", "end", "--session", "s"]
    subprocess.run(ended, cwd=git_repo, check=True, capture_output=True)
    plan = prepare_cleanup()
    assert plan.empty
    assert corral.cleanup(plan).removed == ()
    assert directory.exists()
    maker.kill()
    maker.wait()
    assert kinds(prepare_cleanup().targets) == ["directory"]
    corral.cleanup(prepare_cleanup())
    assert run_directories(state_dir) == []


def test_one_cleanup_is_enough_for_two_that_were_approved(
    git_repo: Path, machine: Machine, track: Tracker
) -> None:
    pid = crashed(git_repo, machine, track)
    plans = [prepare_cleanup(), prepare_cleanup()]
    first, second = (corral.cleanup(plan) for plan in plans)
    assert microvms(first) == {pid}
    assert second.removed == second.remaining == ()
