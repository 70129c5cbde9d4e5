"""Compose stacks: environment-owned, shared by whoever works in the worktree."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.command import ask, corral
from support.repositories import git
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.dockerd import Dockerd

_STACK = """
services:
  web:
    image: box
    command: sh -c 'trap exit TERM; while :; do sleep 0.1; done'
    ports: ["8080:80"]
    volumes: ["data:/data"]
volumes:
  data: {}
"""


class Stack:
    """A worktree with a compose project that corral has brought up an environment for."""

    def __init__(self, directory: Path, docker: Dockerd, program: str) -> None:
        self.directory = directory
        self._docker, self._program = docker, program
        self.project = ""

    def prepare(self, *, write: bool = True) -> Stack:
        if write:
            (self.directory / "compose.yaml").write_text(_STACK)
        self.env = str(ask(self.directory, "up")["environment"]["id"])
        lines = (self.directory / ".env").read_text().splitlines()
        (line,) = [each for each in lines if each.startswith("COMPOSE_PROJECT_NAME=")]
        self.project = line.partition("=")[2]
        return self

    def compose(self, *words: str) -> None:
        done = subprocess.run(
            [self._program, *words],
            cwd=self.directory,
            env=self._docker.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "rror" not in done.stderr, done.stderr

    def run(self, *words: str, session: str) -> None:
        start = ("run", "--", self._program, *words)
        corral(self.directory, *start, env={"CORRAL_SESSION": session})

    def ask(self, *words: str, session: str | None = None, check: int = 0) -> dict[str, Any]:
        env = {"CORRAL_SESSION": session}
        return ask(self.directory, *words, env=env, check=check)

    def states(self) -> dict[str, str]:
        """The state of every container of the project, by name."""
        filtered = ("--filter", f"label=com.docker.compose.project={self.project}")
        lines = self._docker.docker("ps", "--all", *filtered, "--format", "{{.Names}} {{.State}}")
        return dict(line.split() for line in lines.splitlines())

    @property
    def up(self) -> dict[str, str]:
        return {f"{self.project}-web-1": "running"}

    @property
    def volume(self) -> str:
        return f"{self.project}_data"


@pytest.fixture
def stack(git_repo: Path, docker: Dockerd, compose: str, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    monkeypatch.setenv("DOCKER_CONFIG", str(docker.root / "cfg"))
    return Stack(git_repo, docker, compose).prepare()


def kinds(rows: list[dict[str, Any]]) -> set[str]:
    return {row["kind"] for row in rows} - {"directory", "process", "file"}


def begin(stack: Stack, name: str, *options: str) -> None:
    """Start a session; what is created from now on is younger, in the engine's whole seconds."""
    stack.ask("session", "start", "--session", name, *options)
    second = int(time.time())
    eventually(lambda: int(time.time()) > second)


def test_a_stack_that_compose_started_by_itself_is_the_environment_s(
    stack: Stack, docker: Dockerd
) -> None:
    stack.compose("up", "-d")
    rows = stack.ask("status")["owned"]
    assert kinds(rows) == {"container", "network", "volume"}
    assert {r["environment"] for r in rows if r["kind"] in {"container", "volume"}} == {stack.env}
    data = stack.ask("down", "--yes")
    assert kinds(data["removed"]) == {"container", "network", "volume"}
    assert (docker.ids(), docker.ids("volume")) == (set(), set())


def test_down_can_keep_the_data(stack: Stack, docker: Dockerd) -> None:
    stack.compose("up", "-d")
    data = stack.ask("down", "--yes", "--keep-data")
    assert kinds(data["removed"]) == {"container", "network"}
    assert docker.ids("volume") == {stack.volume}


def test_a_session_that_did_not_start_the_stack_only_stops_it(stack: Stack) -> None:
    begin(stack, "one")
    stack.compose("up", "-d")
    stack.ask("reap", session="one")
    assert stack.states() == {f"{stack.project}-web-1": "exited"}


def test_a_session_that_started_the_stack_takes_it_down_and_leaves_the_data(
    stack: Stack, docker: Dockerd
) -> None:
    begin(stack, "one")
    stack.run("up", "-d", session="one")
    data = stack.ask("reap", session="one")
    assert kinds(data["removed"]) == {"container", "network"}
    assert stack.states() == {}
    assert docker.ids("volume") == {stack.volume}


def test_a_stack_that_was_there_before_the_session_stays(stack: Stack) -> None:
    stack.compose("up", "-d")
    begin(stack, "one")
    data = stack.ask("reap", session="one")
    assert kinds(data["removed"]) == set()
    assert stack.states() == stack.up


def test_while_another_worker_lives_there_the_stack_stays(stack: Stack, track: Any) -> None:
    anchor = track.spawn(["sleep", "600"])
    begin(stack, "one")
    stack.run("up", "-d", session="one")
    begin(stack, "two", "--anchor", str(anchor.pid))
    data = stack.ask("reap", session="one")
    assert kinds(data["removed"]) == set()
    assert any("shared environment" in row["reason"] for row in data["left"])
    assert stack.states() == stack.up
    corral(stack.directory, "down", "--yes", check=4)
    assert stack.states() == stack.up


def test_a_copied_project_name_puts_both_stacks_out_of_reach(
    stack: Stack, docker: Dockerd, compose: str, private_root: Path
) -> None:
    """The copy's containers join the first one's project: nobody can tell them apart."""
    stack.compose("up", "-d")
    copy = Stack(private_root / "copy", docker, compose)
    copy.directory.mkdir()
    for name in (".env", "compose.yaml", "compose.override.yaml"):
        shutil.copy(stack.directory / name, copy.directory / name)
    (copy.directory / "compose.override.yaml").unlink()
    text = (copy.directory / "compose.yaml").read_text()
    (copy.directory / "compose.yaml").write_text(
        text.replace("web:", "other:").replace("8080:", "")
    )
    (copy.directory / ".env").write_text(f"COMPOSE_PROJECT_NAME={stack.project}\n")
    copy.compose("up", "-d")
    before = stack.states()
    assert set(before) == {f"{stack.project}-web-1", f"{stack.project}-other-1"}
    unknown = stack.ask("status")["unknown"]
    assert {r["name"] for r in unknown if r["kind"] == "container"} == set(before)
    data = stack.ask("down", "--yes")
    assert kinds(data["removed"]) == set()
    assert stack.states() == before
    assert docker.ids("volume") == {stack.volume}


def test_the_stack_of_a_worktree_that_is_gone_is_an_orphan(
    stack: Stack, git_repo: Path, worktree: Callable[[str], Path], docker: Dockerd, compose: str
) -> None:
    git(git_repo, "add", "compose.yaml")
    git(git_repo, "commit", "-m", "compose")
    other = Stack(worktree("feature"), docker, compose).prepare()
    other.compose("up", "-d")
    stack.compose("up", "-d")
    git(git_repo, "worktree", "remove", "--force", str(other.directory))
    preview = stack.ask("cleanup", "--dry-run")
    assert other.states() == other.up, preview
    data = stack.ask("cleanup", "--yes")
    assert kinds(data["removed"]) == {"container", "network"}
    assert (other.states(), stack.states()) == ({}, stack.up)
    assert docker.ids("volume") == {stack.volume, other.volume}
    stack.ask("cleanup", "--yes", "--data")
    assert docker.ids("volume") == {stack.volume}


def test_another_project_is_not_the_environment_s(stack: Stack) -> None:
    begin(stack, "one")
    words = ("run", "--", os.fspath(stack._program), "-p", "private", "up", "-d")
    said = corral(stack.directory, *words, env={"CORRAL_SESSION": "one"})
    assert "not the one that this environment claimed" in said.err
    data = stack.ask("reap", session="one")
    assert kinds(data["removed"]) == set()


def test_a_compose_file_below_the_worktree_is_the_environment_s_too(
    git_repo: Path, docker: Dockerd, compose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    (git_repo / "deploy").mkdir()
    (git_repo / "deploy/compose.yaml").write_text(_STACK)
    (git_repo / "corral.toml").write_text('[compose]\nfiles = ["deploy/compose.yaml"]\n')
    stack = Stack(git_repo, docker, compose).prepare(write=False)
    stack.compose("up", "-d")
    data = stack.ask("down", "--yes")
    assert kinds(data["removed"]) == {"container", "network", "volume"}
    assert stack.states() == {}


def test_a_stack_stays_its_worktree_s_when_that_is_moved(
    git_repo: Path,
    worktree: Callable[[str], Path],
    docker: Dockerd,
    compose: str,
    monkeypatch: pytest.MonkeyPatch,
    private_root: Path,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker.host)
    stack = Stack(worktree("feature"), docker, compose).prepare()
    stack.compose("up", "-d")
    stack.directory = stack.directory.rename(private_root / "moved")
    ask(git_repo, "cleanup", "--yes", "--data")
    assert stack.states() == stack.up
    assert kinds(stack.ask("status")["owned"]) == {"container", "network", "volume"}
    stack.ask("down", "--yes")
    assert stack.states() == {}
