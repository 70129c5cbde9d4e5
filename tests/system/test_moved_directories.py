"""A directory that is moved by plain `mv`: nothing of it is taken as long as it is anywhere."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from support.command import alive, ask, corral, pids, start
from support.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")


@pytest.fixture
def plain(private_root: Path) -> Path:
    place = private_root / "plain"
    place.mkdir()
    return place


@pytest.fixture
def far(private_root: Path) -> Path:
    place = private_root / "far" / "away"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("dotenv", [True, False], ids=["with its file", "without any file"])
def test_a_plain_directory_with_processes_is_the_same_environment_wherever_it_is(
    plain: Path, far: Path, track: Tracker, dotenv: bool
) -> None:
    if not dotenv:
        (plain / "corral.toml").write_text("[outputs]\ndotenv = ''\n")
    corral(plain, "up", "--port", "web", "--db", "file")
    before = ask(plain, "status")["environment"]
    pid = track.pid(start(plain, *SLEEP, name="job"))
    plain.rename(far / "moved")
    assert ask(far, "cleanup", "--yes", "--data")["removed"] == []
    assert pid in pids(ask(far / "moved", "status")["owned"])
    corral(far / "moved", "up", "--port", "web")
    assert ask(far, "cleanup", "--yes", "--data")["removed"] == []
    after = ask(far / "moved", "status")["environment"]
    assert (after["id"], after["ports"]) == (before["id"], before["ports"])
    assert after["path"] == str(far / "moved")
    corral(far / "moved", "stop", "job")
    assert not alive(pid)
    corral(far / "moved", "down", "--yes")
    assert not (far / "moved" / ".env.local").exists()


def test_a_plain_directory_without_processes_keeps_what_it_has(
    plain: Path, far: Path, private_root: Path
) -> None:
    corral(plain, "up", "--port", "web", "--db", "file")
    before = ask(plain, "status")["environment"]
    plain.rename(far / "moved")
    assert ask(far, "cleanup", "--yes", "--data")["removed"] == []
    corral(far / "moved", "up", "--port", "web")
    assert ask(far / "moved", "status")["environment"]["id"] == before["id"]
    shutil.rmtree(far / "moved")
    assert ask(private_root, "cleanup", "--yes", "--data")["removed"] != []
    assert ask(private_root, "port", "list", "--all")["ports"] == []


def test_a_plain_directory_that_was_copied_is_another_environment(
    plain: Path, far: Path, track: Tracker
) -> None:
    corral(plain, "up", "--port", "web")
    pid = track.pid(start(plain, *SLEEP, name="job"))
    shutil.copytree(plain, far / "copy")
    corral(far / "copy", "up", "--port", "web")
    first, second = (ask(w, "status")["environment"]["id"] for w in (plain, far / "copy"))
    assert first != second
    corral(far / "copy", "down", "--yes", "--force")
    assert alive(pid)


def test_a_new_directory_with_the_old_ones_inode_is_not_the_old_one(plain: Path, far: Path) -> None:
    corral(plain, "up", "--port", "web")
    first = ask(plain, "status")["environment"]["id"]
    plain.rename(far / "moved")
    (far / "moved" / ".env.local").unlink()  # as if it were another directory
    corral(far / "moved", "up", "--port", "web")
    assert ask(far / "moved", "status")["environment"]["id"] != first


def test_a_linked_worktree_with_processes_is_the_same_environment_wherever_it_is(
    worktree: Callable[[str], Path], git_repo: Path, far: Path, track: Tracker
) -> None:
    tree = worktree("tree")
    corral(tree, "up", "--port", "web", "--db", "file")
    before = ask(tree, "status")["environment"]
    pid = track.pid(start(tree, *SLEEP, name="job"))
    tree.rename(far / "moved")
    assert ask(far, "cleanup", "--yes", "--data")["removed"] == []
    corral(far / "moved", "up", "--port", "web")
    after = ask(far / "moved", "status")["environment"]
    assert (after["id"], after["ports"]) == (before["id"], before["ports"])
    assert pid in pids(ask(far / "moved", "status")["owned"])
    tree = (far / "moved").rename(far / "again")
    git(git_repo, "worktree", "prune", "--expire", "now")
    assert ask(far, "cleanup", "--yes", "--data")["removed"] == []
    assert alive(pid)
