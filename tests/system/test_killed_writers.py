"""corral is killed while it writes: git sees nothing of it, and the next call clears it away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from corral.kernel import leavings
from support.command import corral

if TYPE_CHECKING:
    from pathlib import Path

# Ends by SIGKILL where the n-th file that it wrote would get its name, or a copy its own.
_PROGRAM = """
import os, signal, sys
left = int(sys.argv.pop(1))
def killed(real):
    def instead(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    return instead
os.replace, os.link, os.rename = map(killed, (os.replace, os.link, os.rename))
from corral.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def up_killed_at(where: Path, number: int) -> bool:
    """Whether `corral up` came as far as that file, and was killed there."""
    argv = [sys.executable, "-c", _PROGRAM, str(number), "up", "--port", "web"]
    done = subprocess.run(argv, cwd=where, capture_output=True, check=False)
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return done.returncode != 0


def shown_by_git(where: Path) -> str:
    return subprocess.run(
        ["git", "status", "--porcelain"], cwd=where, check=True, capture_output=True, text=True
    ).stdout


def left_in(*places: Path) -> list[str]:
    return [
        os.path.join(path, name)
        for place in places
        for path, directories, files in os.walk(place)
        for name in (*directories, *files)
        if name.startswith(".corral-") and name.endswith(".tmp")
    ]


@pytest.fixture
def worktree(git_repo: Path, private_root: Path) -> Path:
    """One with a directory to copy, a compose file, and a database."""
    (git_repo / ".gitignore").write_text("conf\n")
    (git_repo / "compose.yaml").write_text("services: {api: {image: x, ports: ['3414:80']}}\n")
    (git_repo / "corral.toml").write_text(
        "[files]\ncopy = ['conf/in']\n[database]\nisolation = 'file'\n"
    )
    (git_repo / "conf" / "in").mkdir(parents=True)
    (git_repo / "conf" / "in" / "x").write_text("x")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "add", "."], cwd=git_repo, check=True)
    subprocess.run([*git, "commit", "-qm", "x"], cwd=git_repo, check=True)
    tree = private_root / "tree"
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], cwd=git_repo, check=True)
    return tree


def test_what_a_killed_writer_leaves_is_hidden_from_git_and_removed_by_the_next(
    worktree: Path, git_repo: Path, state_dir: Path
) -> None:
    found = 0
    number = 1
    while up_killed_at(worktree, number):
        found += len(left_in(worktree, git_repo, state_dir))
        assert shown_by_git(worktree) == ""
        number += 1
        if number % 2:
            corral(worktree, "up", "--port", "web")
            assert left_in(worktree, git_repo, state_dir / "environments") == []
            corral(worktree, "down", "--yes")
        else:
            corral(worktree, "down", "--yes", check=None)
            corral(worktree, "up", "--port", "web")
            corral(worktree, "down", "--yes")
        assert left_in(worktree, git_repo) == []
    assert found >= 4


def test_down_removes_what_a_killed_up_left(worktree: Path) -> None:
    corral(worktree, "up", "--port", "web")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    half = worktree / _named(child.pid)
    half.write_text("half")
    child.communicate(b"\n")
    corral(worktree, "down", "--yes")
    assert not half.exists()


def _named(pid: int) -> str:
    """The temporary name of a process that lives."""
    from corral.kernel.procstat import own_namespace, read_stat

    stat = read_stat(pid)
    assert stat is not None
    return f".corral-{pid}-{stat.start_ticks}-{own_namespace()}-{os.urandom(6).hex()}.tmp"


def test_only_what_is_proven_to_be_a_dead_writers_is_touched(git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    dead, linked = _named(child.pid), _named(child.pid)
    before, namespace, after = dead.rpartition("-")[0].rpartition("-")
    elsewhere = f"{before}{namespace}{int(after) + 1}-000000000000.tmp"
    child.communicate(b"\n")
    mine = [
        *(".corral-1-aa.tmp", ".corral-.tmp", ".corral-notes.tmp", f"{dead}.bak", f"x{dead}"),
        dead.replace("-", "_"),
        dead[:-5] + "X.tmp",
        elsewhere,
        leavings.temporary_name(),
    ]
    for name in mine:
        (git_repo / name).write_text("mine")
    (git_repo / dead).write_text("half")
    (git_repo / linked).symlink_to(git_repo / mine[0])
    corral(git_repo, "up", "--port", "web")
    there = set(os.listdir(git_repo))
    assert dead not in there
    assert {*mine, linked} <= there


def test_a_directory_goes_only_where_corral_makes_copies(worktree: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = _named(child.pid)
    child.communicate(b"\n")
    corral(worktree, "up", "--port", "web")
    for place in (worktree, worktree / "conf"):
        (place / name).mkdir()
        (place / name / "x").write_text("x")
    corral(worktree, "up", "--port", "web")
    assert (worktree / name / "x").exists()
    assert not (worktree / "conf" / name).exists()
