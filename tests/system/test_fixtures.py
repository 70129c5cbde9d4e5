"""The root fixtures keep what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.processes import Tracker, in_exec, standing_in
from support.repositories import git
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_home_and_state_directory_are_private(private_root: Path, state_dir: Path) -> None:
    assert os.environ["HOME"].startswith(str(private_root))
    assert os.environ["CORRAL_STATE_DIR"] == str(state_dir)
    assert not state_dir.exists()


def test_a_worktree_stands_beside_its_repository(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("feature")
    assert git(tree, "branch", "--show-current") == "feature"
    assert str(tree) in git(git_repo, "worktree", "list")


def test_a_tracked_process_is_ended_and_another_is_not(track: Tracker) -> None:
    mine, other = Tracker(), track.spawn(_SLEEP, stdout=subprocess.PIPE)
    child = mine.spawn(_SLEEP, stdout=subprocess.PIPE)
    mine.end()
    assert child.returncode is not None
    assert other.poll() is None


def test_a_grandchild_is_ended_by_the_pid_that_was_remembered() -> None:
    tracker = Tracker()
    program = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True)"
    parent = tracker.spawn(
        [sys.executable, "-c", program, "sleep", "600"], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = tracker.pid(int(parent.stdout.readline()))
    assert _alive(pid)
    tracker.end()
    assert not _alive(pid)


def test_what_wiped_its_environment_is_found_by_where_it_stands(
    private_root: Path, track: Tracker
) -> None:
    inside, beside = private_root / "place", private_root / "place-2"
    for directory in (inside, beside):
        directory.mkdir()
    one, _ = (
        track.spawn(["env", "-i", *_SLEEP], cwd=directory, stdout=subprocess.PIPE)
        for directory in (inside, beside)
    )
    assert one.stdout is not None
    one.stdout.readline()  # it runs, and carries nothing
    assert list(standing_in(str(inside))) == [one.pid]
    assert one.pid not in in_exec()


def test_waiting_ends_with_the_message_and_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"the moon is full.*last: 0"):
        eventually(lambda: 0, seconds=0.01, message="the moon is full")
