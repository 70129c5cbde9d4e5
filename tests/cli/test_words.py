"""What the command line says to people: help, mistakes, tables in a terminal, questions."""

from __future__ import annotations

import re
import shlex
import sqlite3
from typing import TYPE_CHECKING

import pytest

from corral.cli.guide import GUIDES
from corral.cli.main import COMMANDS
from support.command import COMMAND, alive, ask, corral, start
from support.repositories import add_worktree
from support.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

SLEEP = (COMMAND[0], "-c", "import signal; signal.pause()")


def test_the_overview_has_a_line_for_every_command_and_the_version(git_repo: Path) -> None:
    shown = corral(git_repo, "--help").out
    for command, (_, summary) in COMMANDS.items():
        assert re.search(rf"^  {command} +{re.escape(summary)}$", shown, re.MULTILINE)
    assert "--version" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_an_example_and_its_exit_statuses(
    git_repo: Path, command: str
) -> None:
    said = corral(git_repo, command, "--help")
    assert "examples:\n  " in said.out
    assert re.search(rf"^  .*\bcorral {command}\b", said.out, re.MULTILINE)
    assert "exit status:\n  " in said.out
    assert corral(git_repo, "help", command).out == said.out
    assert set(GUIDES) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("stauts",), "status"),
        (("url", "wbe"), "web"),
        (("port", "release", "wbe"), "web"),
        (("port", "clam", "x"), "claim"),
        (("env", "--format", "jsno"), "json"),
        (("up", "--db", "filee"), "file"),
        (("run", "--detatch", "--", "true"), "--detach"),
        (("cleanup", "--backend", "proces"), "process"),
        (("stop", "serv"), "server"),
        (("logs", "serv"), "server"),
        (("keep", "serv"), "server"),
        (("session", "end", "--session", "agent-l"), "agent-1"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(
    git_repo: Path, words: tuple[str, ...], meant: str
) -> None:
    corral(git_repo, "up", "--port", "web")
    corral(git_repo, "session", "start", "--session", "agent-1")
    start(git_repo, *SLEEP, name="server")
    assert f"did you mean {meant}?" in corral(git_repo, *words, check=2).err


@pytest.mark.parametrize(
    ("text", "meant"),
    [("[port]\nweb = 1\n", "ports"), ("[keeper]\ngraec = 3\n", "grace")],
)
def test_a_mistyped_key_is_answered_with_the_one_that_was_meant(
    git_repo: Path, text: str, meant: str
) -> None:
    (git_repo / "corral.toml").write_text(text)
    assert f"did you mean {meant}?" in corral(git_repo, "up", check=2).err


def test_a_mistyped_variable_is_answered_with_the_one_that_was_meant(git_repo: Path) -> None:
    said = corral(git_repo, "up", env={"CORRAL_KEEPER_GRAEC": "3"}, check=2)
    assert "did you mean CORRAL_KEEPER_GRACE?" in said.err


def _crashed(where: Path, track: Tracker) -> int:
    """The pid of a service whose worker was killed."""
    worker = track.spawn(SLEEP)
    corral(where, "session", "start", "--session", "agent-7", "--anchor", str(worker.pid))
    pid = start(where, *SLEEP, name="left", env={"CORRAL_SESSION": "agent-7"})
    worker.kill()
    worker.wait()
    return track.pid(pid)


def test_cleanup_says_the_same_of_the_grace_with_and_without_acting(
    git_repo: Path, track: Tracker
) -> None:
    long = {"CORRAL_KEEPER_GRACE": "600"}
    pid = _crashed(git_repo, track)
    for words in (("--dry-run",), ("--yes",), ()):
        shown = corral(git_repo, "cleanup", *words, env=long).out
        assert shown.startswith("nothing to remove\nnot yet: its worker may return")
        assert re.search(rf"pid {pid} .*s of grace are left", shown)
    assert alive(pid)


def test_who_is_in_the_way_is_named_by_session_and_by_worktree(
    git_repo: Path, track: Tracker
) -> None:
    worker = track.spawn(SLEEP)
    corral(git_repo, "session", "start", "--session", "agent-7", "--anchor", str(worker.pid))
    mine = ask(git_repo, "session", "list")["sessions"][0]["owner"]
    start(git_repo, *SLEEP, name="theirs", env={"CORRAL_SESSION": "agent-7"})
    said = corral(git_repo, "down", check=4).err
    assert f"session agent-7 ({mine}): its anchor, process {worker.pid}, lives" in said
    assert f"session agent-7 ({mine})" in corral(git_repo, "stop", "theirs", check=4).err
    assert (
        f"session agent-7 ({mine})" in corral(git_repo, "reap", "--session", "agent-7", check=4).err
    )
    start(git_repo, *SLEEP, name="byhand")
    said = corral(git_repo, "stop", "byhand", env={"CORRAL_SESSION": "agent-7"}, check=4).err
    assert f"whoever works in {git_repo} by hand" in said


def test_sessions_that_ended_long_ago_are_listed_on_request_only(
    git_repo: Path, state_dir: Path
) -> None:
    for session in ("old", "new"):
        corral(git_repo, "session", "start", "--session", session)
        corral(git_repo, "session", "end", "--session", session)
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute(
            "UPDATE epoch SET released_at = released_at - 200000 WHERE owner = "
            "(SELECT owner FROM alias WHERE session = 'old')"
        )
    conn.close()
    said = corral(git_repo, "session", "list")
    assert re.search(rf"new +over +{re.escape(str(git_repo))}", said.out)
    assert "old" not in said.out
    assert "corral session list --all" in said.err
    assert "old" in corral(git_repo, "session", "list", "--all").out
    rows = ask(git_repo, "session", "list")["sessions"]
    assert {row["sessions"][0]: row["forgotten"] for row in rows} == {"old": True, "new": False}


def test_an_option_of_another_action_is_refused(git_repo: Path) -> None:
    for words in (("list", "--force"), ("end", "--all"), ("start", "--all")):
        assert "has no meaning" in corral(git_repo, "session", *words, check=2).err
    assert "has no meaning" in corral(git_repo, "db", "list", "--yes", check=2).err


def test_status_of_all_tells_which_worktree_a_thing_is_in(git_repo: Path) -> None:
    other = add_worktree(git_repo, git_repo.parent / "other")
    start(other, *SLEEP, name="there")
    corral(git_repo, "up")
    shown = corral(git_repo, "status", "--all").out
    assert re.search(rf"^  process +there .* {re.escape(str(other))}$", shown, re.MULTILINE)


def test_events_tell_a_supervisor_from_its_service(git_repo: Path) -> None:
    start(git_repo, *SLEEP, name="web")
    corral(git_repo, "stop", "web")
    shown = corral(git_repo, "events").out
    assert re.search(r"removed +process +web ", shown)
    assert re.search(r"removed +supervisor +web ", shown)
    assert "\033" not in shown
    assert "WHEN" not in shown


@pytest.mark.parametrize("action", ["reset", "drop"])
@pytest.mark.parametrize(("answer", "there"), [("n", True), ("y", False)])
def test_a_database_is_not_reset_or_dropped_before_a_person_agreed(
    git_repo: Path, track: Tracker, action: str, answer: str, *, there: bool
) -> None:
    data = ask(git_repo, "up", "--db", "file")["environment"]["database"]["name"]
    with sqlite3.connect(data) as conn:
        conn.execute("CREATE TABLE mine (x)")
    conn.close()
    with Terminal(track, [*COMMAND, "db", action], git_repo) as terminal:
        terminal.expect(f"{action} of the file")
        terminal.expect("go on")
        terminal.type(f"{answer}\n")
        assert terminal.process.wait(30) == 0
    with sqlite3.connect(data) as conn:
        names = conn.execute("SELECT name FROM sqlite_master").fetchall()
    conn.close()
    assert (names == [("mine",)]) is there


def _shown(track: Tracker, where: Path, columns: int, *words: str, **more: str) -> str:
    """What a command shows in a terminal of so many columns."""
    line = f"stty cols {columns}; {shlex.join((*COMMAND, *words))}; echo the end"
    with Terminal(track, ["sh", "-c", line], where, **{"TERM": "xterm", **more}) as terminal:
        terminal.expect("^the end")
        return terminal.shown.replace("\r\n", "\n").partition("the end")[0]


def test_a_table_keeps_to_the_width_of_its_terminal_and_cuts_no_id(
    git_repo: Path, track: Tracker
) -> None:
    start(git_repo, *SLEEP, name="web")
    corral(git_repo, "reap")
    rows = ask(git_repo, "events")["events"]
    for columns in (60, 100):
        shown = _shown(track, git_repo, columns, "events")
        assert "WHEN" in shown.splitlines()[0]
        for row in rows:
            assert re.search(rf"\b{row['resource']}\b", shown)
        wide = [line for line in shown.splitlines() if len(line) > columns]
        # only what cannot be broken may be wider: the columns before the words
        assert all("recorded" not in line for line in wide)
        assert "recorded" in shown


@pytest.mark.parametrize(
    ("more", "bold"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_only_a_terminal_that_wants_it_gets_bold_text(
    git_repo: Path, track: Tracker, more: dict[str, str], *, bold: bool
) -> None:
    start(git_repo, *SLEEP, name="web")
    assert ("\033[1m" in _shown(track, git_repo, 80, "status", **more)) is bold
    assert "\033" not in corral(git_repo, "status").out


def test_doctor_says_what_follows_from_what_is_missing_and_what_to_do(
    git_repo: Path, private_root: Path
) -> None:
    (private_root / "bin").mkdir()
    alone = {"PATH": str(private_root / "bin"), "HOME": str(private_root)}
    said = corral(git_repo, "doctor", env=alone).out
    assert re.search(r"limited +git .*\n +so: .*\n +do: install git", said)
    assert re.search(r"absent +backend kind .*\n +so: .*\n +do: nothing, unless", said)
    assert re.search(r"backend file .*", said)
    for check in ask(git_repo, "doctor", env=alone)["checks"]:
        assert check["state"] == "ok" or check["consequence"]


def test_trust_says_what_it_is_for_and_what_ends_it(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[setup]\nafter_up = ["echo made", "false"]\n')
    digest = ask(git_repo, "trust")["digest"]
    said = corral(git_repo, "trust").out
    assert said.startswith(f"corral.toml in {git_repo} brings commands, which corral up runs:\n")
    assert "  echo made\n  false\n" in said
    assert f"sha256 {digest[:12]}" in said
    assert "any change of it, also in [vars], asks again" in said


def test_the_remedy_of_a_failed_setup_has_a_line_of_its_own(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[setup]\nafter_up = ["false"]\n')
    corral(git_repo, "trust")
    said = corral(git_repo, "up", check=1).err
    assert "corral: after_up: 'false' ended with exit status 1\n  correct it, then run" in said
    (problem,) = corral(git_repo, "up", "--json", check=1).document["problems"]
    assert problem["remedy"].startswith("correct it")


def test_up_without_configured_ports_says_which_it_keeps(git_repo: Path) -> None:
    assert "ask for one with --port" in corral(git_repo, "up").err
    (git_repo / "corral.toml").write_text("[ports]\nweb = {}\n")
    port = ask(git_repo, "up")["environment"]["ports"]["web"]
    (git_repo / "corral.toml").write_text("")
    said = corral(git_repo, "up").err
    assert f"the environment keeps web={port}" in said
    assert "corral port release web" in said
    assert "ask for one" not in said


def test_the_demonstration_tells_what_and_why_and_proves_that_nothing_is_left(
    git_repo: Path,
) -> None:
    shown = corral(git_repo, "demo", timeout=110).out
    chapters = re.findall(r"^--- (\d) of 5: .+\n    .+\.$", shown, re.MULTILINE)
    assert chapters == list("12345")
    end = shown.rpartition("--- 5 of 5")[2]
    for proof in ("no process of the demonstration is left", "no port is claimed", "is removed"):
        assert re.search(rf"^ok  .*{proof}", end, re.MULTILINE)
    assert shown.endswith("and nothing is left.\n")
    assert all(line.isprintable() for line in shown.splitlines())
