"""What a microVM backend must do, as a suite: run against the real program and against stand-ins.

A module that runs it defines a class on top of `MicroVMs` and a fixture `machine`.
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
from typing import TYPE_CHECKING, Any, NamedTuple

from corral.backends.firecracker import FirecrackerBackend
from corral.contracts import RemovalContext
from corral.model.resource import Judgement, Kind, Verdict
from corral.services.view import look
from support.command import COMMAND, alive, ask, corral
from support.environments import context_of
from support.processes import carrying
from support.waiting import eventually

if TYPE_CHECKING:
    import pytest

    from support.processes import Tracker

NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}
_SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
_STAND_IN = "import signal; signal.pause()"


class Machine(NamedTuple):
    """How to start a microVM: the program (by name on PATH) and a configuration file."""

    config: Path
    program: str = "firecracker"

    def argv(self, config: Path | str | None = None) -> tuple[str, ...]:
        return (self.program, "--no-api", "--config-file", str(config or self.config))

    def text(self) -> str:
        return self.config.read_text()


def stand_in(directory: Path) -> Path:
    """A program `firecracker` in a directory, whose process has the argv of the real one."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "firecracker"
    words = f"{shlex.quote(sys.executable)} -S -c {shlex.quote(_STAND_IN)}"
    path.write_text(f'#!/bin/bash\nexec -a "$0" {words} "$@"\n')
    path.chmod(0o755)
    return path


def run_directories(state_dir: Path) -> list[Path]:
    root = state_dir / "run"
    return sorted(root.iterdir()) if root.exists() else []


def started(where: Path, machine: Machine, name: str = "vm", **options: Any) -> int:
    words = ("run", "--detach", "--name", name, "--", *machine.argv())
    return int(ask(where, *words, **options)["pid"])


def rows(where: Path, group: str, kind: str = "microvm", **options: Any) -> list[dict[str, Any]]:
    return [r for r in ask(where, "status", "--all", **options)[group] if r["kind"] == kind]


def kinds(report: list[dict[str, Any]]) -> dict[str, str]:
    return {r["kind"]: r["id"] for r in report}


def crashed(where: Path, machine: Machine, track: Tracker, session: str = "agent") -> int:
    """A session's microVM whose agent was killed; the microVM's pid."""
    worker = track.spawn(_SLEEP)
    corral(where, "session", "start", "--session", session, "--anchor", str(worker.pid))
    env = {"CORRAL_SESSION": session}
    pid = track.pid(started(where, machine, f"vm-{session}", env=env))
    worker.kill()
    worker.wait()
    return pid


class MicroVMs:
    """The suite."""

    def test_what_corral_run_starts_is_the_workers_microvm(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        pid = track.pid(started(git_repo, machine))
        (row,) = rows(git_repo, "owned")
        assert row["identity"]["pid"] == pid
        assert row["name"] == "vm"
        assert row["backend"] == "firecracker"
        (directory,) = run_directories(state_dir)
        assert row["id"] == directory.name
        assert (directory / "vm.json").read_text() == machine.text()
        processes = rows(git_repo, "owned", "process")
        assert pid not in {int(r["id"]) for r in processes}, "it is one thing, so it is one row"

    def test_a_reap_ends_it_and_removes_its_run_directory(
        self, git_repo: Path, machine: Machine, state_dir: Path
    ) -> None:
        pid = started(git_repo, machine)
        report = ask(git_repo, "reap")
        assert kinds(report["removed"]).keys() >= {"microvm", "directory"}
        assert report["remaining"] == []
        assert not alive(pid)
        assert run_directories(state_dir) == []
        assert ask(git_repo, "reap")["removed"] == []
        events = ask(git_repo, "events")["events"]
        removed = {e["kind"] for e in events if e["action"] == "removed"}
        assert removed >= {"microvm", "directory"}

    def test_its_supervisor_ends_with_it(self, git_repo: Path, machine: Machine) -> None:
        started(git_repo, machine)
        ask(git_repo, "reap")
        eventually(lambda: not list(carrying("CORRAL_STATE_DIR", os.environ["CORRAL_STATE_DIR"])))

    def test_a_stopped_one_is_ended(self, git_repo: Path, machine: Machine) -> None:
        pid = started(git_repo, machine)
        os.kill(pid, signal.SIGSTOP)
        assert "microvm" in kinds(ask(git_repo, "reap")["removed"])
        assert not alive(pid)

    def test_it_is_stopped_by_the_name_of_its_service(
        self, git_repo: Path, machine: Machine, state_dir: Path, track: Tracker
    ) -> None:
        pid = track.pid(started(git_repo, machine, name="sandbox"))
        other = track.pid(started(git_repo, machine, name="other"))
        report = ask(git_repo, "stop", "sandbox")
        assert kinds(report["removed"]).keys() >= {"microvm", "directory"}
        assert not alive(pid)
        (left,) = run_directories(state_dir)
        assert alive(other)
        assert [row["id"] for row in rows(git_repo, "owned")] == [left.name]

    def test_a_run_directory_that_is_still_in_use_stays(
        self, git_repo: Path, machine: Machine, state_dir: Path, track: Tracker
    ) -> None:
        """Also when it was judged before the microVM in it was seen, as by a slower look."""
        track.pid(started(git_repo, machine))
        (directory,) = run_directories(state_dir)
        context = context_of(git_repo)
        view = look(context)
        backend = FirecrackerBackend()
        seen = backend.look_up(view, Kind.DIRECTORY, str(directory))
        assert seen is not None
        target = Judgement(seen, Verdict.REAP, "a test", "test")
        removal = RemovalContext(view, lambda _: "", time.monotonic() + 10)
        (outcome,) = backend.remove([target], removal)
        assert (outcome.result, outcome.reason) == ("remaining", "a microVM still runs in it")
        assert (directory / "vm.json").exists()

    def test_in_the_foreground_its_run_directory_goes_with_its_end(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        run = track.spawn([*COMMAND, "run", "--", *machine.argv()], cwd=git_repo, stdout=-1)
        (row,) = eventually(lambda: rows(git_repo, "owned"))
        os.kill(int(row["identity"]["pid"]), signal.SIGKILL)
        assert run.wait(20) == 128 + signal.SIGKILL
        assert run_directories(state_dir) == []
        assert rows(git_repo, "owned", "directory") == [] or all(
            "/run/" not in r["id"] for r in rows(git_repo, "owned", "directory")
        )

    def test_an_orphan_of_a_crash_is_cleaned_up(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        pid = crashed(git_repo, machine, track)
        assert ask(git_repo, "cleanup", "--yes")["removed"] == [], "within the grace"
        assert alive(pid)
        (orphan,) = rows(git_repo, "orphans", env=NO_GRACE)
        assert orphan["identity"]["pid"] == pid
        report = ask(git_repo, "cleanup", "--yes", "--backend", "firecracker", env=NO_GRACE)
        assert kinds(report["removed"]).keys() == {"microvm", "directory"}
        assert not alive(pid)
        assert run_directories(state_dir) == []

    def test_one_whose_run_directory_is_gone_is_an_orphan_though_its_owner_lives(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        pid = track.pid(started(git_repo, machine))
        (directory,) = run_directories(state_dir)
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
        (orphan,) = rows(git_repo, "orphans")
        assert "run directory is gone" in orphan["reason"]
        report = ask(git_repo, "cleanup", "--yes")
        assert "microvm" in kinds(report["removed"])
        assert not alive(pid)

    def test_a_replaced_run_directory_proves_nothing(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        crashed(git_repo, machine, track)
        (directory,) = run_directories(state_dir)
        directory.rename(directory.with_name("moved"))
        directory.mkdir()
        (directory / "precious").write_text("x")
        corral(git_repo, "cleanup", "--yes", env=NO_GRACE, check=None)
        assert (directory / "precious").exists()
        assert directory.with_name("moved").exists()

    def test_a_strangers_microvm_is_not_even_listed(
        self, git_repo: Path, machine: Machine, track: Tracker, private_root: Path, state_dir: Path
    ) -> None:
        beside = private_root / "state" / "run-not-ours" / "vm-1"
        beside.mkdir(parents=True)
        (beside / "vm.json").write_text(machine.text())
        (private_root / "state").chmod(0o700)
        stranger = track.spawn(machine.argv(beside / "vm.json"), stdout=-1, stderr=-1)
        mine = track.pid(started(git_repo, machine))
        every = [r for g in ("owned", "orphans", "unknown") for r in rows(git_repo, g)]
        assert {r["identity"]["pid"] for r in every} == {mine}
        ask(git_repo, "reap")
        assert stranger.poll() is None
        assert run_directories(state_dir) == []

    def test_what_is_kept_stays_with_its_directory(
        self, git_repo: Path, machine: Machine, track: Tracker, state_dir: Path
    ) -> None:
        pid = track.pid(started(git_repo, machine))
        (directory,) = run_directories(state_dir)
        corral(git_repo, "keep", f"microvm/{directory.name}")
        report = ask(git_repo, "reap")
        assert not {"microvm"} & kinds(report["removed"]).keys()
        assert alive(pid)
        assert directory.exists()
        corral(git_repo, "unkeep", f"microvm/{directory.name}")
        assert "microvm" in kinds(ask(git_repo, "reap")["removed"])

    def test_down_takes_it(self, git_repo: Path, machine: Machine, state_dir: Path) -> None:
        pid = started(git_repo, machine)
        report = ask(git_repo, "down", "--yes")
        assert "microvm" in kinds(report["removed"])
        assert not alive(pid)
        assert run_directories(state_dir) == []

    def test_a_directory_from_python_makes_whatever_runs_in_it_the_workers(
        self,
        git_repo: Path,
        machine: Machine,
        track: Tracker,
        monkeypatch: pytest.MonkeyPatch,
        state_dir: Path,
    ) -> None:
        from corral.api import Environment

        monkeypatch.chdir(git_repo)
        directory = Path(Environment.open().microvm_directory())
        report = ask(git_repo, "reap")
        assert directory.exists(), "it is being created while its maker lives"
        assert report["removed"] == []
        (directory / "own.json").write_text(machine.text())
        vm = track.spawn(machine.argv(directory / "own.json"), stdout=-1, stderr=-1)
        (row,) = eventually(lambda: rows(git_repo, "owned"))
        assert row["identity"]["pid"] == vm.pid
        report = ask(git_repo, "reap")
        assert vm.wait(10) < 0
        assert kinds(report["removed"]).keys() == {"microvm", "directory"}
        assert run_directories(state_dir) == []

    def test_a_maker_that_died_leaves_a_directory_that_is_reaped(
        self, git_repo: Path, state_dir: Path
    ) -> None:
        program = "from corral import Environment; print(Environment.open().microvm_directory())"
        argv = [sys.executable, "-c", program]
        done = subprocess.run(argv, cwd=git_repo, capture_output=True, text=True, check=True)
        assert [str(p) for p in run_directories(state_dir)] == [done.stdout.strip()]
        report = ask(git_repo, "reap")
        assert kinds(report["removed"]) == {"directory": done.stdout.strip()}

    def test_a_run_directory_that_cannot_be_removed_is_reported(
        self, git_repo: Path, machine: Machine, state_dir: Path
    ) -> None:
        pid = started(git_repo, machine)
        (directory,) = run_directories(state_dir)
        stuck = directory / "stuck"
        stuck.mkdir()
        (stuck / "file").write_text("x")
        reap = [*COMMAND, "reap", "--json"]
        if os.geteuid() == 0:
            script = f"mount -t tmpfs none {shlex.quote(str(stuck))} && exec " + shlex.join(reap)
            reap = ["unshare", "--mount", "sh", "-c", script]
        else:
            stuck.chmod(0o500)
        done = subprocess.run(reap, cwd=git_repo, capture_output=True, text=True, check=False)
        report = json.loads(done.stdout)["data"]
        assert not alive(pid)
        assert done.returncode == 1
        (remaining,) = report["remaining"]
        assert remaining["id"] == str(directory)
        assert "stuck" in remaining["reason"]
        stuck.chmod(0o700)
        assert "directory" in kinds(ask(git_repo, "reap")["removed"])

    def test_a_configuration_that_is_not_there_is_the_programs_own_error(
        self, git_repo: Path, machine: Machine, state_dir: Path
    ) -> None:
        if machine.config.with_name("firecracker").exists():
            return  # a stand-in does not read it
        missing = Machine(Path("/nowhere/vm.json")).argv()
        said = corral(git_repo, "run", "--", *missing, check=None)
        assert said.status != 0
        assert run_directories(state_dir) == []

    def test_a_session_that_ends_takes_its_microvm_along(
        self, git_repo: Path, machine: Machine, state_dir: Path
    ) -> None:
        corral(git_repo, "session", "start", "--session", "job")
        pid = started(git_repo, machine, env={"CORRAL_SESSION": "job"})
        began = time.monotonic()
        report = ask(git_repo, "session", "end", "--session", "job")
        assert "microvm" in kinds(report["removed"])
        assert not alive(pid)
        assert run_directories(state_dir) == []
        assert time.monotonic() - began < 20
