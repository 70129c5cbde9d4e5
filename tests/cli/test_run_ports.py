"""`corral run` and the ports that are configured, asked for, shared and given back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, ask, corral, start
from support.repositories import add_worktree

if TYPE_CHECKING:
    from pathlib import Path

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
SHOW = ("sh", "-c", 'echo "$WEB_PORT $URL"')


def test_a_command_has_the_configured_ports_though_nobody_called_up(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text(
        '[ports]\nweb = {}\n[vars]\nURL = "http://localhost:${ports.web}"\n'
    )
    port, url = corral(git_repo, "run", "--", *SHOW).out.split()
    assert url == f"http://localhost:{port}"
    assert ask(git_repo, "up")["environment"]["ports"] == {"web": int(port)}


def test_a_port_that_was_configured_since_is_claimed_by_the_next_run(git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "api")
    (git_repo / "corral.toml").write_text("[ports]\nweb = {}\n")
    assert corral(git_repo, "run", "--", *SHOW).out.strip().isdigit()


def test_a_command_without_its_configured_database_is_told_so(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[database]\nisolation = "file"\n')
    assert "corral up makes it" in corral(git_repo, "run", "--", "true").err
    corral(git_repo, "up")
    assert corral(git_repo, "run", "--", "true").err == ""


def test_a_port_claimed_for_a_command_that_never_started_is_given_back(git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web")
    corral(git_repo, "run", "--port", "web", "--port", "more", "--", "no-such-one", check=127)
    assert set(ask(git_repo, "status")["environment"]["ports"]) == {"web"}
    corral(git_repo, "run", "--port", "more", "--", "false", check=1)
    assert set(ask(git_repo, "status")["environment"]["ports"]) == {"web", "more"}


def test_a_second_run_of_a_name_says_that_its_command_was_not_started(git_repo: Path) -> None:
    pid = start(git_repo, *SLEEP, name="web")
    same = corral(git_repo, "run", "--detach", "--name", "web", "--", *SLEEP)
    assert f"web runs already (pid {pid}); {sys.executable} was not started" in same.err
    other = corral(git_repo, "run", "--name", "web", "--", "sleep", "600")
    assert "which runs another command" in other.err
    assert "sleep was not started" in other.err
    assert "corral stop web" in other.err


def test_a_preferred_port_that_cannot_be_had_names_who_has_it(git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web=20471")
    said = corral(git_repo, "up", "--port", "api=20471")
    assert "20471 is claimed already by this environment, as web" in said.err
    other = add_worktree(git_repo, git_repo.parent / "other")
    said = corral(other, "up", "--port", "web=20471")
    assert f"20471 is claimed already by {git_repo}, as web" in said.err


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_a_run_in_the_foreground_has_no_log_even_after_a_detached_one(
    git_repo: Path, follow: tuple[str, ...]
) -> None:
    start(git_repo, "sh", "-c", "echo old; exec sleep 600", name="web")
    corral(git_repo, "stop", "web")
    logs = (*COMMAND, "logs", *follow, "web")
    said = corral(git_repo, "run", "--name", "web", "--", *logs, check=2)
    assert "it runs in the foreground" in said.err
    assert "an earlier detached run wrote" in said.err
    assert "old" not in said.out
    assert corral(git_repo, "logs", *follow, "web").out == "old\n"


def test_the_same_command_with_a_placeholder_is_the_same_command(git_repo: Path) -> None:
    words = ("run", "--detach", "--name", "web", "--port", "web", "--", "sleep", "6{port}")
    corral(git_repo, *words)
    again = corral(git_repo, *words)
    assert "runs already" in again.err
    assert "another command" not in again.err


def test_a_placeholder_that_no_port_is_given_for_is_said(git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web")
    said = corral(git_repo, "run", "--name", "other", "--", "echo", "{port}")
    assert said.out == "{port}\n"
    assert "{port} was left as it stands" in said.err
    assert "--port NAME" in said.err
    assert "{port}" not in corral(git_repo, "run", "--port", "web", "--", "echo", "{port}").err


def test_a_forgotten_double_dash_is_named(git_repo: Path) -> None:
    said = corral(git_repo, "run", "--detach", "python3", "-m", "http.server", check=2)
    assert "write -- before the command" in said.err
