"""A state directory or registry that cannot be used: said by every command, and by doctor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMANDS = (
    *("up", "env", "url web", "run -- true", "stop x", "logs x", "status", "reap", "cleanup"),
    *("down --yes", "adopt process 1", "keep process:1", "unkeep process:1", "port list"),
    *("port claim a", "port release a", "db list", "db url", "db create", "lock x -- true"),
    *("locks", "session list", "session start", "session end --session x", "events"),
)


def _open_to_all(state: Path) -> None:
    state.mkdir()
    state.chmod(0o777)


def _a_file(state: Path) -> None:
    state.write_text("")


def _garbage(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "registry.sqlite3").write_bytes(b"garbage " * 1000)


def _cut_off(state: Path) -> None:
    corral(state.parent, "up")
    os.truncate(state / "registry.sqlite3", 5000)


def _a_directory(state: Path) -> None:
    (state / "registry.sqlite3").mkdir(parents=True)
    state.chmod(0o700)


def _a_fifo(state: Path) -> None:
    state.mkdir(mode=0o700)
    os.mkfifo(state / "registry.sqlite3")


FAULTS = (_open_to_all, _a_file, _garbage, _cut_off, _a_directory, _a_fifo)


@pytest.mark.parametrize("spoil", FAULTS)
def test_every_command_names_the_file_the_reason_and_the_remedy(
    git_repo: Path, state_dir: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(state_dir)
    for command in COMMANDS:
        said = corral(git_repo, *command.split(), check=None)
        assert said.status == 2, (command, said)
        assert str(state_dir) in said.err, command
        first, *more = said.err.splitlines()
        assert first.startswith("corral: ")
        assert "".join(more).strip(), f"{command}: no remedy"


@pytest.mark.parametrize("spoil", FAULTS)
def test_doctor_reports_it_and_goes_on_with_the_rest(
    git_repo: Path, state_dir: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(state_dir)
    checks = {check["name"]: check for check in ask(git_repo, "doctor", check=2)["checks"]}
    broken = [check for check in checks.values() if check["state"] == "broken"]
    assert broken
    assert all(str(state_dir) in check["detail"] and check["consequence"] for check in broken)
    assert {"process identity", "ports", "git"} <= checks.keys()


def test_locks_that_cannot_be_listed_are_not_none(git_repo: Path, state_dir: Path) -> None:
    corral(git_repo, "up")
    (state_dir / "locks").write_text("")
    assert str(state_dir / "locks") in corral(git_repo, "locks", check=2).err


def test_an_empty_registry_is_one_that_was_never_written(git_repo: Path, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "registry.sqlite3").write_text("")
    assert ask(git_repo, "status")["environment"] is None
    corral(git_repo, "up")
    assert ask(git_repo, "status")["environment"] is not None
