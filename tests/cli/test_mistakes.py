"""What a user gets who is in the wrong place, mistypes, or says the same thing twice."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral, start
from support.repositories import add_worktree

if TYPE_CHECKING:
    from pathlib import Path

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")


@pytest.fixture
def plain(private_root: Path) -> Path:
    """A directory outside of git, without an environment."""
    directory = private_root / "plain"
    directory.mkdir()
    return directory


@pytest.mark.parametrize(
    "words",
    [("env",), ("url",), ("url", "web"), ("stop", "web"), ("logs", "web"), ("db", "url")],
)
def test_where_there_is_no_environment_it_says_where_and_what_to_do(
    plain: Path, words: tuple[str, ...]
) -> None:
    said = corral(plain, *words, check=2)
    assert f"corral: {plain} has no environment yet\n  run: corral up" in said.err
    assert "--env DIR" in said.err
    assert ask(plain, "session", "list")["sessions"] == []


def test_down_of_nothing_says_where_there_is_nothing(plain: Path) -> None:
    for _ in range(2):
        said = corral(plain, "down")
        assert said.out == ""
        assert f"{plain} has no environment: nothing is to be given up" in said.err


@pytest.mark.parametrize(
    ("words", "status", "message", "remedy"),
    [
        (("port",), 2, "claim|release|list", "corral port --help"),
        (("db",), 2, "create|reset|drop|url|list", "corral db --help"),
        (("session",), 2, "start|end|list", "corral session --help"),
        (("session", "start", "--anchor", "x"), 2, "expected a whole number, not 'x'", "--help"),
        (("status", "--json=1"), 2, "--json: takes no value, not '1'", "corral status --help"),
        (("--env",), 2, "no command follows --env", "corral --help"),
        (("--verson",), 2, "no option '--verson'; did you mean --version?", "corral --help"),
        (("config", "keeper.graec"), 2, "did you mean keeper.grace?", "corral config"),
        (("adopt", "proces", "1"), 2, "did you mean process?", "kinds are: "),
        (("adopt", "process", "x"), 2, "there is no process 'x'", "by its pid"),
        (("adopt", "process", str(os.getpid())), 4, "is not adopted: ", "leave it"),
        (
            ("run", "--port", "3000", "--", "true"),
            2,
            "'3000' cannot name a port",
            "finds the number",
        ),
        (("run", "--port", "w=3000", "--", "true"), 2, "'w=3000'", "corral port claim w=3000"),
        (("session", "end", "--session", "x"), 2, "no session 'x'", "corral session list --all"),
    ],
)
def test_a_mistake_is_answered_with_the_thing_and_the_remedy(
    plain: Path, words: tuple[str, ...], status: int, message: str, remedy: str
) -> None:
    said = corral(plain, *words, check=status)
    assert said.out == ""
    first, _, rest = said.err.partition("\n  ")
    assert message in first
    assert remedy in rest


@pytest.mark.parametrize("words", [("--json",), ("--json", "--env", "."), ("--json", "nonsense")])
def test_json_is_answered_in_json_also_where_no_command_is_found(
    plain: Path, words: tuple[str, ...]
) -> None:
    said = corral(plain, *words, check=2)
    document = json.loads(said.out)
    assert (document["schema"], document["result"]) == ("corral/1", "failed")
    assert document["problems"][0]["remedy"] == "corral --help lists the commands"


def test_a_section_without_a_setting_is_no_mistake(plain: Path) -> None:
    assert corral(plain, "config", "ports").out == "nothing is set in [ports]\n"
    assert ask(plain, "config", "ports")["settings"] == []


def test_a_wrong_id_to_adopt_leaves_no_environment(plain: Path) -> None:
    corral(plain, "adopt", "process", "999999999", check=2)
    assert ask(plain, "status")["environment"] is None


def test_a_session_that_nobody_knows_is_said_and_not_an_error(plain: Path) -> None:
    said = corral(plain, "reap", "--session", "nope")
    assert "no owner has the session id 'nope', and nothing here carries it" in said.err
    said = corral(plain, "reap", env={"CORRAL_SESSION": "nope"})
    assert "no owner has the session id 'nope'" in said.err
    corral(plain, "session", "start", "--session", "known")
    assert corral(plain, "reap", "--session", "known").err == ""


def test_the_end_of_a_session_is_said_however_often(plain: Path) -> None:
    corral(plain, "session", "start", "--session", "mine")
    for _ in range(2):
        said = corral(plain, "session", "end", "--session", "mine")
        assert (said.out, said.err) == ("", "session mine has ended\n")


def test_a_service_of_another_worktree_is_not_this_ones(git_repo: Path) -> None:
    other = add_worktree(git_repo, git_repo.parent / "other")
    start(git_repo, *SLEEP, name="web")
    corral(other, "up")
    (git_repo / "sub").mkdir()
    said = corral(other, "stop", "web", check=2)
    assert f"nothing is called web in {other}" in said.err
    assert "removed" in corral(git_repo / "sub", "stop", "web").out
    assert "web does not run" in corral(git_repo, "stop", "web").err


def test_ports_of_all_are_listed_with_their_worktree(git_repo: Path) -> None:
    other = add_worktree(git_repo, git_repo.parent / "other")
    port = ask(other, "up", "--port", "web")["environment"]["ports"]["web"]
    shown = corral(git_repo, "port", "list", "--all").out
    assert any(f" {port} " in line and line.endswith(f" {other}") for line in shown.splitlines())
