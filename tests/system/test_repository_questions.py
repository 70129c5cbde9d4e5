"""What git is asked, with real repositories."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from corral.errors import EnumerationError
from corral.services.repository import Repository
from corral.wiring import run_program
from support.repositories import git, make_repository

if TYPE_CHECKING:
    from pathlib import Path


def questions(root: Path, **more: str) -> Repository:
    return Repository(str(root), {**os.environ, **more}, run_program)


def test_tracked_files_and_directories_with_tracked_files_are_told_apart(git_repo: Path) -> None:
    (git_repo / "sub").mkdir()
    (git_repo / "sub" / "file").write_text("x")
    (git_repo / "s*b").write_text("x")
    git(git_repo, "add", "sub")
    asked = ["README", "sub", "s*b", "nothing"]
    assert questions(git_repo).tracked(asked) == {"README", "sub"}
    assert questions(git_repo).tracked([]) == frozenset()


def test_a_leaked_git_dir_leads_nowhere(git_repo: Path, private_root: Path) -> None:
    other = make_repository(private_root / "other")
    leaked = {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "x"), "GIT_PREFIX": "y"}
    assert questions(git_repo, **leaked).tracked(["README"]) == {"README"}


def test_outside_git_nothing_is_tracked(private_root: Path) -> None:
    assert questions(private_root).tracked(["home"]) == frozenset()


def test_a_git_that_fails_or_is_missing_is_not_a_no(git_repo: Path, private_root: Path) -> None:
    (private_root / "broken").mkdir()
    (private_root / "broken" / ".git").write_text("gitdir: /nowhere")
    with pytest.raises(EnumerationError, match="git cannot tell"):
        questions(private_root / "broken").tracked(["x"])
    with pytest.raises(EnumerationError, match="git"):
        questions(git_repo, PATH="/nowhere").tracked(["README"])


def test_included_are_ignored_files_that_a_pattern_matches(git_repo: Path) -> None:
    (git_repo / ".gitignore").write_text("*.secret\n/build/\n")
    (git_repo / ".worktreeinclude").write_text("*.secret\nbuild/keep\n*.txt\n")
    for name in ("a.secret", "build/keep", "build/other", "plain.txt", "sp ace.secret"):
        (git_repo / name).parent.mkdir(exist_ok=True)
        (git_repo / name).write_text("x")
    found = questions(git_repo).ignored_and_matched(str(git_repo / ".worktreeinclude"))
    assert set(found) == {"a.secret", "build/keep", "sp ace.secret"}


def test_a_repositorys_own_configuration_runs_nothing(git_repo: Path, private_root: Path) -> None:
    ran = private_root / "ran"
    program = private_root / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    (git_repo / ".gitignore").write_text("*.secret\n")
    (git_repo / "a.secret").touch()
    git(git_repo, "add", ".gitignore")
    git(git_repo, "commit", "-q", "-m", "Ignore")
    blob = git(git_repo, "rev-parse", "HEAD:.gitignore").strip()
    git(git_repo, "update-index", "--skip-worktree", ".gitignore")
    # A file that git would have to fetch in order to answer, from a remote that is a command.
    (git_repo / ".gitignore").unlink()
    (git_repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "far",
        "remote.far.promisor": "true",
        "remote.far.url": f"ext::{program}",
        "protocol.ext.allow": "always",
        "core.fsmonitor": str(program),
        "core.hooksPath": str(private_root),
    }.items():
        git(git_repo, "config", key, value)
    asked = questions(git_repo)
    assert asked.tracked(["README"]) == {"README"}
    (git_repo / ".worktreeinclude").write_text("*.secret\n")
    with suppress(EnumerationError):  # what was not fetched cannot be told
        asked.ignored_and_matched(str(git_repo / ".worktreeinclude"))
    assert not ran.exists()
