"""Workers inside and beside each other: each one's end takes down its own, and only that."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import settle
from support.command import COMMAND, alive, ask, corral, pids, start
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}
INSIDE = pytest.mark.parametrize("how", [(), ("nohup",), ("setsid",), ("nohup", "setsid")])


def owners(where: Path) -> dict[str, dict[str, Any]]:
    listed = ask(where, "session", "list")["sessions"]
    return {session: owner for owner in listed for session in owner["sessions"]}


def leave(one: Agent, track: Tracker) -> tuple[int, int]:
    """What an agent leaves: a server by corral, and one put into the background by hand."""
    return track.pid(one.server(*SLEEP)), track.pid(one.background("sleep 600"))


def crash(one: Agent) -> None:
    os.kill(one.pid, signal.SIGKILL)
    eventually(lambda: not alive(one.pid))


@INSIDE
def test_the_inner_agents_end_releases_the_inner_one_only(
    agent: MakeAgent, track: Tracker, git_repo: Path, how: tuple[str, ...]
) -> None:
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, how=how)
    inner.start()
    inners = leave(inner, track)
    known = owners(git_repo)
    assert known["inner"]["parent"] == known["outer"]["owner"]
    assert known["inner"]["owner"] != known["outer"]["owner"]
    inner.end()
    settle(*inners)
    assert all(map(alive, (*outers, inner.pid, outer.pid)))
    assert owners(git_repo)["outer"]["life"] == "live"


@INSIDE
def test_the_outer_agents_end_leaves_the_inner_one_and_all_below_it(
    agent: MakeAgent, track: Tracker, git_repo: Path, how: tuple[str, ...]
) -> None:
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, how=how)
    inner.start()
    inners = leave(inner, track)
    # A child of the inner agent that only carries the outer one's mark.
    tool = track.pid(int(inner._ask(argv=[*SLEEP], background=True)["pid"]))
    outer.end()
    settle(*outers)
    assert all(map(alive, (*inners, tool, inner.pid)))
    assert owners(git_repo)["inner"]["life"] == "live"
    inner.end()
    settle(*inners)


def test_an_inner_agent_under_the_outer_ones_supervisor_is_left(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    """`corral run --detach -- claude`: its supervisor must live on as well."""
    outer = agent("outer")
    outer.start()
    run = (*COMMAND, "run", "--detach", "--")
    inner = agent("inner", inside=outer, how=run)
    inner.start()
    inners = leave(inner, track)
    outer.end()
    settle()
    assert all(map(alive, (*inners, inner.pid)))
    assert owners(git_repo)["outer"]["life"] == "over"
    inner.end()
    settle(*inners)


def test_the_inner_agents_reap_is_not_ended_by_the_outer_ones(
    agent: MakeAgent, track: Tracker
) -> None:
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, how=(*COMMAND, "run", "--detach", "--"))
    inner.start()
    inners = leave(inner, track)
    inner.end()
    outer.end()
    settle(*inners, *outers)


@INSIDE
def test_a_crash_of_the_outer_agent_leaves_the_inner_one(
    agent: MakeAgent, track: Tracker, git_repo: Path, how: tuple[str, ...]
) -> None:
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, how=how)
    inner.start()
    inners = leave(inner, track)
    crash(outer)
    report = ask(git_repo, "cleanup", "--yes", env=NO_GRACE)
    assert pids(report["removed"]) == set(outers)
    assert all(map(alive, (*inners, inner.pid)))
    later = leave(inner, track)
    inner.end()
    settle(*inners, *later)


@pytest.mark.parametrize("how", [(), ("nohup", "setsid"), (*COMMAND, "run", "--detach", "--")])
def test_a_crash_of_the_inner_agent_is_its_own(
    agent: MakeAgent, track: Tracker, git_repo: Path, how: tuple[str, ...]
) -> None:
    """What it left is an orphan that the outer one's end does not take."""
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, how=how)
    inner.start()
    inners = leave(inner, track)
    crash(inner)
    assert pids(ask(git_repo, "status", env=NO_GRACE)["orphans"]) == set(inners)
    assert owners(git_repo)["outer"]["life"] == "live"
    outer.end()
    settle(*outers)
    assert all(map(alive, inners))
    report = ask(git_repo, "cleanup", "--yes", env=NO_GRACE)
    assert pids(report["removed"]) == set(inners)


def test_codex_inside_claude_is_a_worker_of_its_own(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    """It inherits CLAUDE_PID and claude's session id, which mean the outer one."""
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    inner = agent("inner", inside=outer, kind="codex", pid_variable=False)
    inner.start()
    (epoch,) = owners(git_repo)["inner"]["epochs"]
    assert (epoch["anchor"], epoch["agent"]) == (inner.pid, "codex")
    variables = {"CLAUDE_CODE_SESSION_ID": "outer", "CODEX_SESSION_ID": "inner"}
    shown = inner.run(*COMMAND, "status", "--json", env=variables)
    assert shown.data["session"] == "inner"
    inner.end()
    settle()
    assert all(map(alive, outers))
    assert owners(git_repo)["outer"]["life"] == "live"


def test_a_worker_that_cannot_be_told_from_the_one_above_does_not_end_it(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    """A codex whose program has another name is anchored to the claude that it runs in."""
    outer = agent("outer")
    outer.start()
    outers = leave(outer, track)
    payload = outer.payload("SessionStart", source="startup", session_id="inner")
    outer.run(sys.executable, "-m", "corral.cli.hook", "codex", input=payload)
    known = owners(git_repo)
    assert known["inner"]["owner"] != known["outer"]["owner"]
    payload = outer.payload("SessionEnd", reason="other", session_id="inner")
    outer.run(sys.executable, "-m", "corral.cli.hook", "codex", input=payload)
    settle()
    assert owners(git_repo)["inner"]["life"] == "over"
    assert owners(git_repo)["outer"]["life"] == "live"
    assert all(map(alive, outers))


def test_two_agents_in_one_worktree_keep_their_own(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one, two = agent("one"), agent("two")
    one.start()
    two.start()
    ones, twos = leave(one, track), leave(two, track)
    assert one.variables["CORRAL_OWNER"] != two.variables["CORRAL_OWNER"]
    one.end()
    settle(*ones)
    assert all(map(alive, twos))
    assert corral(git_repo, "down", check=4).status == 4, "the other one lives here"
    two.end()
    settle(*twos)


def test_an_agent_that_moves_between_worktrees_leaves_nothing_in_any(
    agent: MakeAgent, worktree: Callable[[str], Path], track: Tracker
) -> None:
    here, there = worktree("here"), worktree("there")
    one = agent("one", cwd=here)
    one.start()
    first = leave(one, track)
    one.cwd = there
    second = leave(one, track)
    one.start("compact")
    third = leave(one, track)
    assert corral(there, "down", check=4).status == 4, "the agent lives there now"
    one.end()
    settle(*first, *second, *third)
    corral(there, "down")
    corral(here, "down")


def test_down_means_the_worktree_of_the_current_directory(
    agent: MakeAgent, worktree: Callable[[str], Path], track: Tracker
) -> None:
    here, there = worktree("here"), worktree("there")
    one = agent("one", cwd=here)
    one.start()
    pid = track.pid(one.server(*SLEEP))
    corral(there, "up", "--port", "web")
    one.corral("down", "--yes", cwd=there)
    assert alive(pid)
    assert ask(there, "status")["environment"] is None
    assert ask(here, "status")["environment"] is not None


def test_the_same_session_in_two_terminals_lives_until_both_have_ended(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one, two = agent("same"), agent("same")
    one.start()
    two.start("resume")
    ones, twos = leave(one, track), leave(two, track)
    assert len(owners(git_repo)["same"]["epochs"]) == 2
    one.end()
    settle()
    assert all(map(alive, (*ones, *twos)))
    assert owners(git_repo)["same"]["life"] == "live"
    two.end()
    settle(*ones, *twos)


def test_a_session_that_is_resumed_within_the_grace_keeps_what_it_had(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("same")
    one.start()
    ones = leave(one, track)
    before = owners(git_repo)["same"]["owner"]
    crash(one)
    assert owners(git_repo)["same"]["life"] == "grace"
    again = agent("same", environ={"CORRAL_KEEPER_GRACE": "2"})
    again.start("resume")
    known = owners(git_repo)["same"]
    assert (known["owner"], known["life"]) == (before, "live")
    assert ask(git_repo, "cleanup", "--yes", env=NO_GRACE)["removed"] == []
    assert all(map(alive, ones))
    again.end()
    settle(*ones)


def test_an_ended_session_that_is_resumed_is_the_same_worker(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("same")
    one.start()
    before = owners(git_repo)["same"]["owner"]
    one.end()
    settle()
    again = agent("same")
    again.start("resume")
    pid = track.pid(again.server(*SLEEP))
    assert owners(git_repo)["same"]["owner"] == before
    again.end()
    settle(pid)


def test_a_person_beside_an_agent_keeps_what_is_theirs(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("one")
    one.start()
    persons = track.pid(start(git_repo, *SLEEP))
    agents = leave(one, track)
    seen = ask(git_repo, "status")
    assert seen["session"] is None
    report = ask(git_repo, "reap")
    assert pids(report["removed"]) == {persons}
    assert all(map(alive, agents))
    persons = track.pid(start(git_repo, *SLEEP))
    one.end()
    settle(*agents)
    assert alive(persons)


_DETACH = """
import os, sys
if os.fork() == 0:
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])
"""


def _in_terminal(track: Tracker, argv: list[str], cwd: Path, environ: dict[str, str]) -> str:
    """What a program says in a terminal of its own, whose parents do not lead to any agent."""
    script = shutil.which("script")
    if script is None:
        pytest.skip("script(1) is not installed")
    log = cwd.parent / f"terminal-{os.urandom(4).hex()}"
    opened = [sys.executable, "-c", _DETACH, script, "-q", "-e", "-c", shlex.join(argv), str(log)]
    null = subprocess.DEVNULL
    track.spawn(opened, cwd=cwd, env=environ, stdin=null, stdout=null).wait()
    eventually(lambda: log.exists() and "Script done" in log.read_text(errors="replace"), 30)
    return log.read_text(errors="replace")


def test_a_person_in_a_terminal_that_an_agent_once_opened_acts_for_themselves(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("one")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    inherited = {
        **os.environ,
        "CLAUDE_CODE_SESSION_ID": "one",
        "CLAUDE_PID": str(one.pid),
        "CORRAL_OWNER": one.variables["CORRAL_OWNER"],
    }
    for _ in range(2):
        shown = _in_terminal(track, [*COMMAND, "status", "--json"], git_repo, inherited)
        assert '"session": null' in shown
        _in_terminal(track, [*COMMAND, "reap"], git_repo, inherited)
        assert alive(pid)
        if alive(one.pid):
            crash(one)


def test_what_a_person_runs_in_a_terminal_that_an_agent_once_opened_is_the_persons(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("one")
    one.start()
    inherited = {
        **os.environ,
        "CLAUDE_CODE_SESSION_ID": "one",
        "CLAUDE_PID": str(one.pid),
        "CORRAL_OWNER": one.variables["CORRAL_OWNER"],
    }
    run = [*COMMAND, "run", "--detach", "--json", "--", *SLEEP]
    said = _in_terminal(track, run, git_repo, inherited)
    found = re.search(r'"pid": (\d+)', said)
    assert found, said
    persons = track.pid(int(found[1]))
    agents = leave(one, track)
    one.end()
    settle(*agents)
    assert alive(persons)
    assert pids(ask(git_repo, "reap")["removed"]) == {persons}


def test_a_detached_script_of_an_agents_acts_for_the_agent(
    agent: MakeAgent, git_repo: Path
) -> None:
    """Marked, cut off from its parents and without a terminal, as any process of the agent's."""
    one = agent("one")
    one.start()
    said = git_repo.parent / "said"
    command = shlex.join([*COMMAND, "status", "--json"])
    one.shell(f"setsid sh -c 'sleep 0.2; {command} >{said}.new; mv {said}.new {said}' & disown")
    eventually(said.exists, 20)
    assert '"session": "one"' in said.read_text()


def test_an_inherited_id_of_nobodys_process_is_not_acted_for(
    agent: MakeAgent, git_repo: Path
) -> None:
    one = agent("one")
    one.start()
    seen = ask(git_repo, "status", env={"CLAUDE_CODE_SESSION_ID": "one"})
    assert seen["session"] is None


def test_an_agent_that_runs_in_tmux_is_reaped_all_the_same(
    agent: MakeAgent, track: Tracker, private_root: Path, git_repo: Path
) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    socket = str(private_root / "tmux")
    how = ("tmux", "-S", socket, "new-session", "-d")
    one = agent("one", how=how)
    server = track.pid(_parent_of(one.pid))
    one.start()
    served, detached = track.pid(one.server(*SLEEP)), track.pid(one.background("setsid sleep 600"))
    in_terminal = track.pid(one.background("sleep 601"))
    one.end()
    settle(served, detached)
    assert alive(server)
    assert alive(one.pid)
    unknown = {row["id"]: row for row in ask(git_repo, "status")["unknown"]}
    assert "terminal" in unknown[str(in_terminal)]["reason"]


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def test_a_tmux_server_that_an_agent_started_is_left_with_its_panes(
    agent: MakeAgent, track: Tracker, private_root: Path, git_repo: Path
) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    one = agent("one")
    one.start()
    socket = str(private_root / "tmux")
    one.shell(f"tmux -S {socket} new-session -d sleep 600")
    server = track.pid(int(one.shell(f"tmux -S {socket} display -p '#{{pid}}'").out))
    pane = track.pid(int(one.shell(f"tmux -S {socket} list-panes -F '#{{pane_pid}}'").out))
    shared = ask(git_repo, "status")["shared"]
    assert str(server) in {row["id"] for row in shared}
    one.end()
    settle()
    assert alive(server)
    assert alive(pane)


def test_a_foreign_live_session_is_not_reaped_from_outside(
    agent: MakeAgent, track: Tracker, git_repo: Path
) -> None:
    one = agent("one")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    corral(git_repo, "reap", "--session", "one", check=4)
    assert alive(pid)
    assert pid in pids(one.corral("reap")["removed"])
