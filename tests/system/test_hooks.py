"""An agent's session, told by its hooks: what it is given, and what its end takes down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import HOOK, settle
from support.command import alive, ask, corral, pids
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")


def sessions(where: Path) -> dict[str, dict[str, Any]]:
    """What is known of each session id."""
    listed = ask(where, "session", "list")["sessions"]
    return {session: owner for owner in listed for session in owner["sessions"]}


def hooked(where: Path) -> list[tuple[str, str, str]]:
    """(event, session, source or reason) of every call of a hook, in order."""
    events = ask(where, "events")["events"]
    return [(e["name"], e["resource"], e["detail"]) for e in events if e["action"] == "hook"]


def test_a_session_that_starts_gets_an_environment_and_its_mark(
    agent: MakeAgent, git_repo: Path
) -> None:
    (git_repo / "Procfile").write_text("web: server --port 3418\napi: server\n")
    one = agent()
    said = one.start()
    seen = ask(git_repo, "status")
    ports = seen["environment"]["ports"]
    assert ports["web"] == 3418
    assert one.variables["CORRAL_OWNER"] == sessions(git_repo)["s-1"]["owner"]
    assert one.variables["WEB_PORT"] == "3418"
    assert f"WEB_PORT={ports['web']}" in said.out
    assert f"WEB_PORT={ports['web']}" in (git_repo / ".env.local").read_text()
    assert len(said.out.splitlines()) <= 8
    for word in ("corral status", "corral run --detach", "taken down", "Never stop"):
        assert word in said.out


def test_the_epochs_anchor_is_the_agents_own_process(agent: MakeAgent, git_repo: Path) -> None:
    for number, variable in enumerate((True, False)):
        one = agent(f"s-{number}", pid_variable=variable)
        one.start()
        (epoch,) = sessions(git_repo)[f"s-{number}"]["epochs"]
        assert epoch["anchor"] == one.pid
        assert epoch["agent"] == "claude"


def test_a_pid_variable_that_names_no_ancestor_anchors_nothing(
    git_repo: Path, track: Tracker
) -> None:
    stranger = track.spawn(SLEEP)
    payload = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(git_repo)}
    subprocess.run(
        [*HOOK, "claude"],
        input=json.dumps(payload),
        env={**os.environ, "CLAUDE_PID": str(stranger.pid)},
        text=True,
        check=True,
        capture_output=True,
    )
    (epoch,) = sessions(git_repo)["s-1"]["epochs"]
    assert epoch["anchor"] != stranger.pid


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork", "", "new"])
def test_every_source_of_a_start_is_a_start(agent: MakeAgent, git_repo: Path, source: str) -> None:
    agent().start(source)
    assert sessions(git_repo)["s-1"]["life"] == "live"
    assert hooked(git_repo) == [("SessionStart", "s-1", source)]


def test_an_agent_in_the_home_directory_gets_a_mark_and_no_file(agent: MakeAgent) -> None:
    home = Path(os.environ["HOME"])
    before = sorted(home.iterdir())
    one = agent(cwd=home)
    said = one.start()
    assert "this is your home directory, no project: nothing is written here" in said.out
    assert one.variables["CORRAL_OWNER"] == sessions(home)["s-1"]["owner"]
    assert [each for each in sorted(home.iterdir()) if each not in before] in (
        [],
        [home / ".local"],  # the registry
    )
    (home / "corral.toml").write_text("[ports]\nweb = 3421\n")
    assert "no project" not in one.start("resume").out
    assert "WEB_PORT=" in (home / ".env.local").read_text()


def test_where_no_file_carries_the_variables_the_agent_is_not_told_that_it_has_them(
    agent: MakeAgent, git_repo: Path
) -> None:
    (git_repo / "Procfile").write_text("web: server --port 3420\n")
    one = agent()
    without = one.run(
        *HOOK, "claude", input=one.payload("SessionStart"), env={"CLAUDE_ENV_FILE": ""}
    )
    assert "(corral env prints them): WEB_PORT=3420" in without.out
    assert ", in your shell: WEB_PORT=3420" in one.start("resume").out


def test_a_start_in_the_same_process_goes_on_with_its_epoch(
    agent: MakeAgent, git_repo: Path
) -> None:
    one = agent()
    for source in ("startup", "compact", "resume"):
        one.start(source)
    assert len(sessions(git_repo)["s-1"]["epochs"]) == 1


def test_a_start_runs_no_command_and_makes_no_database(agent: MakeAgent, git_repo: Path) -> None:
    (git_repo / "seed.sqlite3").write_bytes(b"")
    (git_repo / "corral.toml").write_text(
        "[ports]\nweb = 3419\n"
        '[setup]\nafter_up = ["touch ran"]\n'
        '[database]\nisolation = "file"\nseed = "seed.sqlite3"\n'
    )
    agent().start()
    seen = ask(git_repo, "status")["environment"]
    assert seen["ports"] == {"web": 3419}
    assert seen["database"] is None
    assert not (git_repo / "ran").exists()


def test_a_wrong_configuration_is_said_and_the_session_marked_all_the_same(
    agent: MakeAgent, git_repo: Path
) -> None:
    (git_repo / "corral.toml").write_text("[ports]\nweb = 'x'\n")
    one = agent()
    said = one.start()
    assert "corral.toml" in said.out
    assert len(said.out.splitlines()) <= 8
    assert "CORRAL_OWNER" in one.variables_file.read_text()
    (git_repo / "corral.toml").unlink()
    assert sessions(git_repo)["s-1"]["life"] == "live"


def test_what_is_there_already_is_not_provisioned_again(agent: MakeAgent, git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web=3001")
    before = (git_repo / ".env.local").stat()
    one = agent()
    one.start()
    assert one.variables["WEB_PORT"] == "3001"
    after = (git_repo / ".env.local").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_file_that_went_missing_is_written_again(agent: MakeAgent, git_repo: Path) -> None:
    corral(git_repo, "up", "--port", "web=3001")
    (git_repo / ".env.local").unlink()
    agent().start()
    assert "WEB_PORT=3001" in (git_repo / ".env.local").read_text()


def test_what_others_wrote_for_the_shells_stays(agent: MakeAgent) -> None:
    one = agent()
    one.variables_file.write_text("export OTHER='of another hook'")
    one.start()
    assert one.variables["OTHER"] == "of another hook"
    assert one.variables["CORRAL_OWNER"]


def test_a_sessions_end_takes_down_what_it_started_and_nothing_else(
    agent: MakeAgent, git_repo: Path, track: Tracker
) -> None:
    stranger = track.spawn(SLEEP)
    one = agent()
    one.start()
    persons = track.pid(int(ask(git_repo, "run", "--detach", "--", *SLEEP)["pid"]))
    served = one.server(*SLEEP, name="web")
    bare = one.background("sleep 600")
    for pid in (served, bare):
        track.pid(pid)
        assert alive(pid)
    one.end()
    settle(served, bare)
    assert alive(persons)
    assert stranger.poll() is None
    assert alive(one.pid)
    assert sessions(git_repo)["s-1"]["life"] == "over"
    removed = [e for e in ask(git_repo, "events")["events"] if e["action"] == "removed"]
    assert {int(e["resource"]) for e in removed} >= {served, bare}
    assert {e["trigger"] for e in removed} == {"session end"}


def test_the_end_is_on_disk_when_the_hook_returns(agent: MakeAgent, git_repo: Path) -> None:
    one = agent()
    one.start()
    one.end("prompt_input_exit")
    assert sessions(git_repo)["s-1"]["life"] == "over"
    assert hooked(git_repo)[-1] == ("SessionEnd", "s-1", "prompt_input_exit")


@pytest.mark.parametrize("reason", ["logout", "prompt_input_exit", "other", "", "new"])
def test_every_other_reason_ends_the_worker(
    agent: MakeAgent, git_repo: Path, track: Tracker, reason: str
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    one.end(reason)
    settle(pid)
    assert sessions(git_repo)["s-1"]["life"] == "over"


@pytest.mark.parametrize("reason", ["clear", "resume"])
def test_a_conversation_that_ends_does_not_end_the_worker(
    agent: MakeAgent, git_repo: Path, track: Tracker, reason: str
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    one.end(reason)
    settle()
    assert alive(pid)
    assert sessions(git_repo)["s-1"]["life"] == "live"
    assert hooked(git_repo)[-1] == ("SessionEnd", "s-1", reason)


def test_after_clear_the_new_id_is_the_same_worker(
    agent: MakeAgent, git_repo: Path, track: Tracker
) -> None:
    one = agent("first")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    one.end("clear")
    one.session = "second"
    one.start("clear")
    known = sessions(git_repo)
    assert known["first"]["owner"] == known["second"]["owner"]
    assert len(known["second"]["epochs"]) == 1
    assert alive(pid)
    one.end()
    settle(pid)


def test_an_end_gives_back_the_ports_of_dead_processes(agent: MakeAgent, git_repo: Path) -> None:
    claim = "import corral; print(corral.allocate_ephemeral_port('gone').port)"
    subprocess.run([sys.executable, "-c", claim], check=True, capture_output=True)
    assert len(ask(git_repo, "port", "list", "--all")["ports"]) == 1
    one = agent()
    one.start()
    one.end()
    settle()
    assert ask(git_repo, "port", "list", "--all")["ports"] == []


def test_the_other_half_finishes_what_an_earlier_one_could_not(
    agent: MakeAgent, track: Tracker
) -> None:
    one, two = agent("one"), agent("two")
    one.start()
    two.start()
    pid = track.pid(one.server(*SLEEP))
    # The hook of the first is killed right after it wrote down that it was called.
    _release_only(one)
    assert alive(pid)
    two.end()
    settle(pid)


@pytest.mark.parametrize("words", [("reap", "--session", "one"), ("session", "end")])
def test_an_end_that_nobody_took_in_yet_counts_for_who_clears_up_from_elsewhere(
    agent: MakeAgent, git_repo: Path, track: Tracker, words: tuple[str, ...]
) -> None:
    one = agent("one")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    _release_only(one)
    assert pid in pids(ask(git_repo, *words, env={"CORRAL_SESSION": "one"})["removed"])
    assert alive(one.pid)


def _release_only(one: Agent) -> None:
    """What a hook leaves that is killed before it could hand over."""
    program = (
        "import os, sys; import corral.cli.hook as hook; "
        "hook._hand_over = lambda *a: os._exit(0); hook.main(['claude'])"
    )
    done = one.run(sys.executable, "-c", program, input=one.payload("SessionEnd", reason="other"))
    assert done.status == 0


def test_a_crashed_session_is_left_to_its_user(
    agent: MakeAgent, git_repo: Path, track: Tracker
) -> None:
    """Clearing up after a crash without being asked is not what a hook does."""
    one, two = agent("one"), agent("two")
    one.start()
    two.start()
    pid = track.pid(one.server(*SLEEP))
    os.kill(one.pid, signal.SIGKILL)
    eventually(lambda: not alive(one.pid))
    two.end()
    settle()
    orphans = ask(git_repo, "status", env={"CORRAL_KEEPER_GRACE": "0"})["orphans"]
    assert pid in pids(orphans)
    assert alive(pid)


def test_a_look_from_the_agents_shell_does_not_list_itself(agent: MakeAgent) -> None:
    one = agent()
    one.start()
    command = f"{sys.executable} -m corral.cli.main status --json; true"
    seen = json.loads(one.shell(command).out)["data"]
    assert [seen[group] for group in ("owned", "orphans", "unknown")] == [[], [], []]


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_a_person_who_asks_is_told_the_usage(word: str) -> None:
    said = subprocess.run([*HOOK, word], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("usage: corral-hook claude|codex")
