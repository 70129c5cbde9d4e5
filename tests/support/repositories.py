"""Real git repositories and worktrees for tests."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GIT_CONFIG = """\
[user]
    name = Test Worker
    email = worker@localhost
[init]
    defaultBranch = main
[commit]
    gpgsign = false
[core]
    fsync = none
[gc]
    auto = 0
[protocol "file"]
    allow = always
"""


def git(directory: Path, *arguments: str) -> str:
    """What `git ARGUMENTS` printed in `directory`, stripped; CalledProcessError if it fails."""
    done = subprocess.run(
        ["git", *arguments], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repository(directory: Path) -> Path:
    """Make a repository with one commit at `directory` (created if missing) and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q")
    (directory / "README").write_text("a repository for a test\n")
    git(directory, "add", "README")
    git(directory, "commit", "-q", "-m", "Start")
    return directory


def add_worktree(repository: Path, directory: Path, branch: str = "") -> Path:
    """Add a worktree of `repository` at `directory` on a new branch and return its path."""
    git(repository, "worktree", "add", "-q", "-b", branch or directory.name, str(directory))
    return directory
