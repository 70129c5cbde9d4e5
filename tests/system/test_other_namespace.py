"""A service of another pid namespace, such as that of a container with this state directory."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral, pids, start
from support.engines import require_engine
from support.programs import in_pid_namespace

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker


def from_elsewhere(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = in_pid_namespace([*COMMAND, *words])
    return subprocess.run(argv, cwd=where, capture_output=True, text=True, check=False)


@pytest.fixture
def service(git_repo: Path, track: Tracker) -> int:
    require_engine("namespaces")
    return track.pid(start(git_repo, "sleep", "600", name="web"))


def test_it_is_shown_as_unknown_with_the_reason(git_repo: Path, service: int) -> None:

    seen: dict[str, Any] = json.loads(from_elsewhere(git_repo, "status", "--json").stdout)["data"]
    (row,) = [r for r in seen["unknown"] if r["id"] == str(service)]
    assert (row["name"], row["verdict"]) == ("web", "UNKNOWN")
    assert "another pid namespace" in row["reason"]
    assert service in pids(ask(git_repo, "status")["owned"])


@pytest.mark.parametrize("words", [["stop", "web"], ["run", "--name", "web", "--", "true"]])
def test_nobody_says_that_it_runs_or_does_not(
    git_repo: Path, service: int, words: list[str]
) -> None:
    said = from_elsewhere(git_repo, *words)
    assert said.returncode == 4
    assert "nobody can tell from here whether web runs" in said.stderr
    assert alive(service)


@pytest.mark.parametrize("words", [["reap"], ["cleanup", "--yes"], ["down", "--yes", "--force"]])
def test_nothing_of_it_is_taken_down_from_there(
    git_repo: Path, service: int, words: list[str]
) -> None:
    assert from_elsewhere(git_repo, *words).returncode == 0
    assert alive(service)
    assert service in pids(ask(git_repo, "reap")["removed"])
    corral(git_repo, "down", "--yes")
