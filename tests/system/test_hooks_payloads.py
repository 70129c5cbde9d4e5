"""Whatever a hook is told: what is not understood changes nothing, and nothing fails the agent."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.decide.hooks import ended_epochs, payload_in
from corral.model.hook import Caller
from corral.services import lifecycle
from support.agents import HOOK, settle
from support.command import alive, ask, corral

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
START = {"hook_event_name": "SessionStart", "session_id": "s-1", "source": "startup"}
END = {"hook_event_name": "SessionEnd", "session_id": "s-1", "reason": "other"}


def call(content: bytes | str, *, agent: str = "claude", **options: Any) -> Any:
    """One call of the hook as a child of the test, which is no agent."""
    data = content.encode() if isinstance(content, str) else content
    begun = time.monotonic()
    done = subprocess.run(
        [*HOOK, agent], input=data, capture_output=True, check=False, timeout=30, **options
    )
    assert time.monotonic() - begun < 10
    return done


def start(where: Path, **more: Any) -> str:
    return json.dumps({**START, "cwd": str(where), **more})


def end(where: Path, **more: Any) -> str:
    return json.dumps({**END, "cwd": str(where), **more})


MALFORMED: list[bytes] = [
    b"",
    b" ",
    b"{",
    b"}",
    b"null",
    b"[]",
    b"1",
    b'"SessionEnd"',
    b'{"hook_event_name": "SessionEnd"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1"}',
    b'{"hook_event_name": "SessionEnd", "session_id": null, "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": ["s-1"], "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": " \\t", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1\\u0000", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "\\ud800", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": "relative"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": ""}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": "/\\u0000"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": "/\\ud800"}',
    b'{"hook_event_name": 7, "session_id": "s-1", "cwd": "/"}',
    b'{"hook_event_name": "", "session_id": "s-1", "cwd": "/"}',
    b'{"hook_event_name": "sessionend", "session_id": "s-1", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "session_id": "s-1", "cwd": "/"} trailing',
    b"\xff\xfe SessionEnd",
    b"[" * 100_000 + b"SessionEnd",
    b'{"hook_event_name": "SessionEnd", "session_id": "' + b"x" * 1025 + b'", "cwd": "/"}',
    b'{"hook_event_name": "SessionEnd", "cwd": "/' + b"x" * 20_000 + b'", "session_id": "s-1"}',
    b'{"hook_event_name": "Stop", "session_id": "s-1", "cwd": "/"}',
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_not_understood_changes_nothing(
    agent: MakeAgent, git_repo: Path, track: Tracker, content: bytes
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    before = ask(git_repo, "session", "list")
    done = one.run(*HOOK, "claude", input=content.decode("latin-1"))
    assert (done.status, done.out) == (0, "")
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 1
    settle()
    assert ask(git_repo, "session", "list") == before
    assert alive(pid)
    events = [e for e in ask(git_repo, "events")["events"] if e["action"] == "hook"]
    assert len(events) == 2, "every call leaves a line"


@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_at_all_raise_or_end_anything(content: bytes) -> None:
    payload = payload_in(content)
    assert ended_epochs(payload, None, Caller((), "boot", 1)) == ()


_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["hook_event_name", "session_id", "cwd", "reason"]), _json))
def test_no_json_at_all_raises(value: dict[str, Any]) -> None:
    payload = payload_in(json.dumps(value).encode())
    if payload is not None:
        assert payload.session.strip()
        assert payload.directory.startswith("/")


HOSTILE = [
    "'; touch pwned #",
    "$(touch pwned)",
    "`touch pwned`",
    "../../etc",
    "a\nb",
    '"',
    "日本",
    "-x",
]


@pytest.mark.parametrize("session", HOSTILE)
def test_a_hostile_id_is_data_in_the_shell_and_in_the_registry(
    agent: MakeAgent, git_repo: Path, track: Tracker, session: str
) -> None:
    one = agent(session)
    one.start()
    pid = track.pid(one.server(*SLEEP))
    assert one.corral("status")["session"] == session
    one.end()
    settle(pid)
    assert not list(git_repo.parent.rglob("pwned"))


def test_a_hostile_directory_is_data(agent: MakeAgent, private_root: Path, track: Tracker) -> None:
    where = private_root / 'a\'b $(touch pwned)\n`x` "y"'
    where.mkdir()
    (where / "corral.toml").write_text("[vars]\nROOT = '$(touch pwned) `x` \\\\ \"'\n")
    one = agent(cwd=where)
    said = one.start()
    assert len(said.out.splitlines()) <= 8
    assert one.variables["ROOT"] == '$(touch pwned) `x` \\\\ "'
    pid = track.pid(one.server(*SLEEP))
    one.end()
    settle(pid)
    assert not list(private_root.rglob("pwned"))


def test_no_value_can_be_taken_for_a_line_of_the_variables_file(
    agent: MakeAgent, git_repo: Path
) -> None:
    hostile = "a\nexport PATH=/evil\r\nit's \\ $(touch pwned)\t\x1b[0m\n'\n日本"
    (git_repo / "corral.toml").write_text(f"[vars]\nODD = {json.dumps(hostile)}\n", "utf-8")
    one = agent()
    one.start()
    lines = one.variables_file.read_text("utf-8").split("\n")
    assert [line for line in lines if line and not line.startswith("export ")] == []
    assert not [line for line in lines if line.startswith("export PATH")]
    shown = one.shell('printf %s "$ODD" | od -An -v -tx1').out
    assert bytes.fromhex(shown).decode() == hostile
    for shell in ("sh", "bash"):
        script = f'. {one.variables_file}; printf %s "$PATH"'
        done = subprocess.run([shell, "-c", script], check=True, capture_output=True, cwd=git_repo)
        assert done.stdout.decode() == os.environ["PATH"]
    assert not list(git_repo.parent.rglob("pwned"))


def test_a_name_that_a_shell_keeps_for_itself_does_not_reach_the_agents_shell(
    agent: MakeAgent, git_repo: Path
) -> None:
    (git_repo / "corral.toml").write_text("[vars]\nUID = '0'\nPLAIN = 'x'\n")
    one = agent()
    one.start()
    assert one.variables["PLAIN"] == "x"
    assert one.shell('printf %s "$UID"').out == str(os.getuid())
    assert one.shell("true").err == ""


def test_the_word_of_the_other_event_in_a_payload_does_not_confuse(
    agent: MakeAgent, private_root: Path
) -> None:
    where = private_root / "SessionEnd"
    where.mkdir()
    one = agent("SessionStart", cwd=where)
    one.start()
    assert ask(where, "session", "list")["sessions"][0]["life"] == "live"
    one.end()
    settle()
    assert ask(where, "session", "list")["sessions"][0]["life"] == "over"


def test_a_session_that_starts_in_a_directory_that_is_gone_changes_nothing(git_repo: Path) -> None:
    done = call(start(git_repo / "gone"))
    assert (done.returncode, done.stdout) == (0, b"")
    assert ask(git_repo, "session", "list")["sessions"] == []
    (line,) = ask(git_repo, "events")["events"]
    assert "not there" in line["detail"]


def test_a_session_that_ends_in_a_worktree_that_is_gone_ends_all_the_same(
    agent: MakeAgent, worktree: Callable[[str], Path], git_repo: Path, track: Tracker
) -> None:
    tree = worktree("gone")
    one = agent(cwd=tree)
    one.start()
    pid = track.pid(one.server(*SLEEP))
    subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=git_repo, check=True)
    done = one.run(*HOOK, "claude", input=one.payload("SessionEnd", reason="other"), cwd=git_repo)
    assert done.status == 0
    settle(pid)


def test_an_id_that_nobody_knows_changes_nothing(git_repo: Path) -> None:
    assert call(end(git_repo)).returncode == 0
    settle()
    assert ask(git_repo, "session", "list")["sessions"] == []
    (line,) = ask(git_repo, "events")["events"]
    assert (line["name"], line["owner"]) == ("SessionEnd", None)


def test_a_prefix_of_an_id_is_another_id(agent: MakeAgent, track: Tracker, git_repo: Path) -> None:
    one = agent("session-10")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    for other in ("session-1", "session-10 ", "SESSION-10"):
        one.end(session_id=other)
    settle()
    assert alive(pid)
    assert ask(git_repo, "session", "list")["sessions"][0]["life"] == "live"


def test_a_huge_payload_is_taken_off_the_agents_hands_and_changes_nothing(git_repo: Path) -> None:
    for word in ("SessionStart", "SessionEnd", "x"):
        done = call(f'{{"{word}": "' + "x" * 20_000_000)
        assert (done.returncode, done.stdout) == (0, b"")
    settle()
    assert ask(git_repo, "session", "list")["sessions"] == []


@pytest.mark.parametrize("payload", [start, end])
def test_a_pipe_that_is_never_closed_is_not_waited_for(
    payload: Callable[..., str], git_repo: Path, track: Tracker
) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, payload(git_repo).encode())
        begun = time.monotonic()
        hook = track.spawn([*HOOK, "claude"], stdin=reading, stdout=subprocess.DEVNULL)
        assert hook.wait(20) == 0
        assert time.monotonic() - begun < 10
    finally:
        os.close(reading)
        os.close(writing)
    settle()
    names = [e["name"] for e in ask(git_repo, "events")["events"]]
    assert names == [json.loads(payload(git_repo))["hook_event_name"]]


def test_a_pipe_on_which_nothing_is_said_is_not_waited_for(git_repo: Path, track: Tracker) -> None:
    reading, writing = os.pipe()
    try:
        hook = track.spawn([*HOOK, "claude"], stdin=reading)
        assert hook.wait(20) == 0
    finally:
        os.close(reading)
        os.close(writing)
    assert len(ask(git_repo, "events")["events"]) == 1


def test_a_payload_that_comes_in_pieces_is_one(git_repo: Path, track: Tracker) -> None:
    hook = track.spawn([*HOOK, "claude"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert hook.stdin is not None
    for piece in start(git_repo).encode().splitlines(keepends=True):
        for at in range(0, len(piece), 40):
            hook.stdin.write(piece[at : at + 40])
            hook.stdin.flush()
    hook.stdin.close()
    assert hook.wait(20) == 0
    assert len(ask(git_repo, "session", "list")["sessions"]) == 1


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd"])
def test_closed_streams_harm_nothing(
    agent: MakeAgent, git_repo: Path, closed: tuple[int, ...], event: str
) -> None:
    one = agent()
    one.start()
    redirect = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    shell = f'"$0" -m corral.cli.hook claude {redirect}'
    done = one.run("sh", "-c", shell, sys.executable, input=one.payload(event, reason="clear"))
    assert done.status == 0
    settle()
    assert ask(git_repo, "session", "list")["sessions"][0]["life"] == "live"
    with open(os.path.join(os.environ["CORRAL_STATE_DIR"], "registry.sqlite3"), "rb") as file:
        assert file.read(16) == b"SQLite format 3\0"


@pytest.mark.parametrize("event", [start, end])
def test_a_reader_that_went_away_fails_nothing(
    event: Callable[..., str], git_repo: Path, track: Tracker
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    hook = track.spawn([*HOOK, "claude"], stdin=subprocess.PIPE, stdout=writing, stderr=writing)
    os.close(writing)
    hook.communicate(event(git_repo).encode(), 20)
    assert hook.returncode == 0


@pytest.mark.parametrize("arguments", [[], ["claud"], ["claude", "x"], ["claude", "--help"]])
def test_an_agent_that_is_not_known_is_a_wrong_use(arguments: list[str]) -> None:
    done = subprocess.run([*HOOK, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_on_stdout_and_no_wrong_use(word: str) -> None:
    done = subprocess.run([*HOOK, word], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: corral-hook claude|codex")
    assert done.stderr == ""


def test_the_agents_directory_is_nothing_to_import_from(agent: MakeAgent, git_repo: Path) -> None:
    for name in ("json", "sqlite3", "corral", "select"):
        (git_repo / f"{name}.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    one = agent()
    console = os.path.join(os.path.dirname(sys.executable), "corral-hook")
    for event in ("SessionStart", "SessionEnd"):
        done = one.run(console, "claude", input=one.payload(event, reason="other"))
        assert done.status == 0, done
    settle()
    assert not (git_repo / "imported").exists()
    assert [e["name"] for e in ask(git_repo.parent, "events")["events"]][:2] == [
        "SessionStart",
        "SessionEnd",
    ]


def test_the_agents_pipes_are_not_held_open_by_what_is_handed_over(
    agent: MakeAgent, track: Tracker, git_repo: Path, state_dir: Path
) -> None:
    """A hook whose child holds a pipe keeps the agent waiting for its end."""
    one = agent()
    one.start()
    reading, writing = os.pipe()
    with lifecycle.hold(str(state_dir), what="a test"):
        hook = track.spawn([*HOOK, "claude"], stdin=subprocess.PIPE, pass_fds=[writing])
        os.close(writing)
        hook.communicate(end(git_repo).encode(), 20)
        ready, _, _ = select.select([reading], [], [], 10)
        assert ready, "what waits for the lock holds the pipe"
        assert os.read(reading, 1) == b""
    os.close(reading)
    settle()


def test_variables_file_that_cannot_be_written_is_said(agent: MakeAgent, git_repo: Path) -> None:
    one = agent()
    one.variables_file.mkdir()
    said = one.start()
    assert "corral-hook" in said.err
    assert ask(git_repo, "session", "list")["sessions"][0]["life"] == "live"


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))


def test_half_a_variable_is_never_left(tmp_path: Path) -> None:
    """The write is cut by a limit on the size of files, as a full disk cuts it."""
    path = tmp_path / "variables"
    path.write_text("export KEPT=1\n")
    program = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from corral.services.shell_file import add_exports\n"
        "add_exports(sys.argv[1], [('LONG', 'x' * 500)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        preexec_fn=_small_files,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert path.read_text() == "export KEPT=1\n"


def test_the_hooks_of_both_agents_say_which_agent_called(git_repo: Path) -> None:
    for agent in ("claude", "codex"):
        call(start(git_repo, session_id=agent), agent=agent)
    events = ask(git_repo, "events")["events"]
    seen = [(e["resource"], e["trigger"]) for e in events]
    assert seen == [("claude", "claude"), ("codex", "codex")]


def test_a_state_directory_that_cannot_be_used_is_said_and_fails_nothing(
    git_repo: Path, state_dir: Path
) -> None:
    state_dir.mkdir(mode=0o777)
    state_dir.chmod(0o777)
    for payload in (start(git_repo), end(git_repo)):
        done = call(payload)
        assert done.returncode == 0
        assert b"can be written by other users" in done.stderr
        assert done.stdout == b""
    corral(git_repo, "status", check=2)
