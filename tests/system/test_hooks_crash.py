"""A crashed agent: what it left is shown to everybody, with the very command that clears it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import settle
from support.command import alive, ask, corral, pids
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
OVER = {"CORRAL_KEEPER_GRACE": "0"}
STILL = {"CORRAL_KEEPER_GRACE": "600"}
SESSIONS = pytest.mark.parametrize("session", ["s-1", "-it's $(mine); `x`"])


class Crash:
    """An agent that was killed, what it left, and another agent that lives in its worktree."""

    def __init__(self, make: MakeAgent, track: Tracker, session: str) -> None:
        self.other = make("other")
        crashed = make(session)
        for each in (crashed, self.other):
            each.start()
        self.others = leave(self.other, track)
        self.left = leave(crashed, track)
        os.kill(crashed.pid, signal.SIGKILL)
        eventually(lambda: not alive(crashed.pid))

    def is_cleared(self) -> None:
        """Nothing is left but the other agent's things."""
        eventually(lambda: not any(map(alive, self.left)), 30)
        assert all(map(alive, self.others))


def leave(one: Agent, track: Tracker) -> tuple[int, ...]:
    """A server by corral, one in the background, and one that is cut off from its parents."""
    started = (
        one.server(*SLEEP),
        one.background("sleep 600"),
        one.background("nohup setsid sleep 601"),
    )
    return tuple(map(track.pid, started))


@pytest.fixture
def crash(agent: MakeAgent, track: Tracker) -> Callable[[str], Crash]:
    return lambda session: Crash(agent, track, session)


def command_in(reason: str) -> str:
    """The command at the end of a reason."""
    found = re.search(r"(corral (?:reap|cleanup).*) takes it(?: now)?$", reason)
    assert found, reason
    return found[1]


def typed(command: str, where: Path, **more: str) -> None:
    """The command, typed into a shell as it stands there."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, **more}
    done = subprocess.run(
        ["bash", "-c", command], cwd=where, env=environ, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done


def rows_of(rows: list[dict[str, Any]], crash: Crash) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == "process" and int(row["id"]) in crash.left]


@SESSIONS
def test_after_the_grace_it_is_an_orphan_with_the_command_that_clears_it(
    crash: Callable[[str], Crash], git_repo: Path, private_root: Path, session: str
) -> None:
    one = crash(session)
    for where in (git_repo, private_root):
        assert pids(ask(where, "status", env=OVER)["orphans"]) == set(one.left)
    orphans = rows_of(ask(private_root, "status", env=OVER)["orphans"], one)
    assert {row["verdict"] for row in orphans} == {"REAP"}
    (command,) = {command_in(row["reason"]) for row in orphans}
    typed(command, private_root, **OVER)
    one.is_cleared()


@SESSIONS
def test_within_the_grace_it_is_kept_and_status_says_for_how_long_and_what_clears_it_now(
    crash: Callable[[str], Crash], git_repo: Path, private_root: Path, session: str
) -> None:
    one = crash(session)
    commands = set()
    for where in (git_repo, private_root):
        seen = ask(where, "status", env=STILL)
        assert rows_of(seen["orphans"], one) == []
        kept = rows_of(seen["owned"], one)
        assert {int(row["id"]) for row in kept} == set(one.left)
        for row in kept:
            assert row["verdict"] == "KEEP"
            assert re.search(r"its anchor, process \d+, is gone; \d+ s of grace", row["reason"])
            commands.add(command_in(row["reason"]))
    (command,) = commands
    assert all(map(alive, one.left))
    typed(command, git_repo, **STILL)
    one.is_cleared()


def test_another_session_sees_it_and_may_clear_it(
    agent: MakeAgent,
    crash: Callable[[str], Crash],
    worktree: Callable[[str], Path],
    track: Tracker,
) -> None:
    one = crash("s-1")
    elsewhere = agent("elsewhere", cwd=worktree("elsewhere"), environ=OVER)
    elsewhere.start()
    own = leave(elsewhere, track)
    orphans = rows_of(elsewhere.corral("status")["orphans"], one)
    assert {int(row["id"]) for row in orphans} == set(one.left)
    (command,) = {command_in(row["reason"]) for row in orphans}
    path = Path(sys.executable).parent
    elsewhere.shell(f'PATH="{path}:$PATH"\n{command}')
    one.is_cleared()
    assert all(map(alive, own))


def test_a_person_reads_the_state_and_the_command(
    crash: Callable[[str], Crash], git_repo: Path
) -> None:
    one = crash("s-1")
    said = corral(git_repo, "status", env=STILL).out
    block = said.partition("crashed, kept while the owner may return\n")[2]
    lines = [line for line in block.splitlines() if f"pid {one.left[0]} " in line]
    assert len(lines) == 1
    assert "is gone; " in lines[0]
    assert "s of grace are left" in lines[0]
    assert command_in(lines[0]) == "corral reap --session=s-1"
    said = corral(git_repo, "status", env=OVER).out
    block = said.partition("orphans (corral cleanup takes them down)\n")[2]
    lines = [line for line in block.splitlines() if f"pid {one.left[0]} " in line]
    assert len(lines) == 1
    typed(command_in(lines[0]), git_repo)
    one.is_cleared()


def test_cleanup_takes_it_only_when_the_grace_has_run_out(
    crash: Callable[[str], Crash], git_repo: Path
) -> None:
    one = crash("s-1")
    report = ask(git_repo, "cleanup", "--yes", env=STILL)
    assert report["removed"] == []
    assert {int(row["id"]) for row in rows_of(report["left"], one)} == set(one.left)
    assert all("grace" in row["reason"] for row in rows_of(report["left"], one))
    assert pids(ask(git_repo, "cleanup", "--yes", env=OVER)["removed"]) == set(one.left)
    one.is_cleared()


def test_what_nobody_clears_is_left_to_the_resumed_session(
    agent: MakeAgent, crash: Callable[[str], Crash], git_repo: Path
) -> None:
    one = crash("s-1")
    assert pids(ask(git_repo, "status", env=OVER)["orphans"]) == set(one.left)
    again = agent("s-1", environ=OVER)
    again.start("resume")
    seen = ask(git_repo, "status", env=OVER)
    assert rows_of(seen["orphans"], one) == []
    assert not any("takes it" in row["reason"] for row in rows_of(seen["owned"], one))
    again.end()
    settle(*one.left)
    one.is_cleared()
