"""What hooks must survive: being killed midway, a crowd, a busy gate, a full disk."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from corral.kernel.identity import own_identity
from corral.model.process import ProcessIdentity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.services import lifecycle
from corral.store import records
from corral.store.registry import Registry
from support.agents import HOOK, Agent, handed_over, killed_after, other_halves, settle
from support.command import COMMAND, alive, ask, corral, start
from support.engines import require_engine
from support.ill_engine import IllEngine, done
from support.programs import program, said
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")

LEAVE_TEN = """
for i in 1 2 3 4 5; do
    setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!
    nohup sleep 600 </dev/null >/dev/null 2>&1 & echo $!
done
"""


def life(where: Path, session: str = "s-1") -> str:
    """What is proven of a session: live, grace, over, or "" where nobody knows it."""
    listed = ask(where, "session", "list")["sessions"]
    return next((str(owner["life"]) for owner in listed if session in owner["sessions"]), "")


MIDWAY = pytest.mark.parametrize("milliseconds", [5, 15, 20, 25, 30, 35, 40, 60, 100])


@MIDWAY
def test_a_start_that_is_killed_midway_is_made_good_by_the_next(
    agent: MakeAgent, git_repo: Path, track: Tracker, milliseconds: int
) -> None:
    one = agent()
    payload = one.payload("SessionStart", source="startup")
    one.run(*killed_after(milliseconds / 1000), input=payload)
    one.start()
    assert life(git_repo) == "live"
    pid = track.pid(one.server(*SLEEP))
    one.end()
    settle(pid)


@MIDWAY
def test_an_end_that_is_killed_midway_was_heard_or_was_not(
    agent: MakeAgent, git_repo: Path, track: Tracker, milliseconds: int
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    payload = one.payload("SessionEnd", reason="other")
    one.run(*killed_after(milliseconds / 1000), input=payload)
    handed_over()
    if life(git_repo) == "live":
        assert alive(pid), "what was not heard changed nothing"
        one.end()
    elif alive(pid):
        # Heard, and killed before it could hand over: shown until the next one finishes it.
        orphans = {row["id"]: row for row in ask(git_repo, "status")["orphans"]}
        assert str(pid) in orphans
        agent("another").start()
        one.end()
    settle(pid)
    assert life(git_repo) == "over"


def test_what_is_handed_over_outlives_the_hooks_process_group(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    with lifecycle.hold(str(state_dir), what="a test"):
        one.run(*killed_after(1.5), input=one.payload("SessionEnd", reason="other"))
        assert alive(pid)
    settle(pid)
    assert life(git_repo) == "over"


def test_a_detached_reap_waits_for_the_lock_as_long_as_it_must(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    with lifecycle.hold(str(state_dir), what="a test"):
        one.end()
        eventually(lambda: not list((state_dir / "spool").glob("*.json")), message="it was heard")
        assert alive(pid)
        assert life(git_repo) == "over"
    settle(pid)


class Left(NamedTuple):
    """What a session left, and what belongs to another one that lives beside it."""

    one: Agent
    mine: tuple[int, ...]
    others: tuple[int, ...]


@pytest.fixture
def left(agent: MakeAgent, track: Tracker) -> Left:
    """Two sessions in one worktree, with a server and ten more processes each."""
    started = []
    one, other = agent("s-1"), agent("other")
    for each in (one, other):
        each.start()
        bare = [int(line) for line in each.shell(LEAVE_TEN).out.split()]
        started.append(tuple(map(track.pid, (each.server(*SLEEP), *bare))))
    return Left(one, *started)


def _is_finished(left: Left, where: Path) -> None:
    """Nothing of the session is left nor known, each was taken once, the other one's lives."""
    settle(*left.mine)
    assert all(map(alive, left.others))
    assert life(where, "other") == "live"
    seen = ask(where, "status", "--all")
    rows = [row for group in ("owned", "orphans", "unknown") for row in seen[group]]
    assert [row for row in rows if row["session"] == "s-1"] == []
    removed = [e["resource"] for e in ask(where, "events")["events"] if e["action"] == "removed"]
    assert len(removed) == len(set(removed))


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it was done already
        descriptor = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _some_time() -> None:
    """As long as a teardown takes here, or less: where it is then is left to chance."""
    time.sleep(random.SystemRandom().uniform(0, 0.7))  # another one in every test


@pytest.mark.parametrize("finisher", ["session end", "cleanup", "reap"])
@pytest.mark.parametrize("_round", range(4))
def test_the_other_half_that_is_killed_midway_is_followed_by_one_that_finishes(
    agent: MakeAgent, git_repo: Path, left: Left, finisher: str, _round: int
) -> None:
    left.one.end()
    halves = list(other_halves())
    _some_time()
    for pid in halves:
        _kill(pid)
    assert life(git_repo) == "over", "it was heard"
    if finisher == "session end":
        last = agent("last")
        last.start()
        last.end()
    elif finisher == "cleanup":
        assert ask(git_repo, "cleanup", "--yes")["remaining"] == []
    else:
        assert ask(git_repo, "reap", "--session", "s-1")["remaining"] == []
    _is_finished(left, git_repo)


@pytest.mark.parametrize("words", [("reap",), ("reap", "--session", "s-1", "--force")])
@pytest.mark.parametrize("_round", range(4))
def test_a_reap_that_is_killed_midway_is_finished_by_the_end_of_the_session(
    git_repo: Path, left: Left, words: tuple[str, ...], _round: int
) -> None:
    argv = [*COMMAND, *words]
    shell = f"{shlex.join(argv)} >/dev/null 2>&1 & echo $!"
    pid = int(left.one.shell(shell).out)
    _some_time()
    _kill(pid)
    left.one.end()
    _is_finished(left, git_repo)
    assert life(git_repo) == "over"


@pytest.mark.parametrize("_round", range(4))
def test_a_cleanup_after_a_crash_that_is_killed_midway_is_finished_by_the_next(
    git_repo: Path, left: Left, track: Tracker, _round: int
) -> None:
    os.kill(left.one.pid, signal.SIGKILL)
    eventually(lambda: not alive(left.one.pid))
    no_grace = {"CORRAL_KEEPER_GRACE": "0"}
    first = track.spawn(
        [*COMMAND, "cleanup", "--yes", "--json"], cwd=git_repo, env={**os.environ, **no_grace},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _some_time()
    first.kill()
    first.wait()
    assert ask(git_repo, "cleanup", "--yes", env=no_grace)["remaining"] == []
    _is_finished(left, git_repo)


def _hold_gate(state_dir: Path) -> int:
    descriptor = os.open(state_dir / "gate.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def test_an_end_does_not_wait_for_the_gate(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    gate = _hold_gate(state_dir)
    before = time.monotonic()
    one.end()
    assert time.monotonic() - before < 1.5
    assert life(git_repo) == "over", "it is on disk and counts, though nobody took it in yet"
    names = [e["name"] for e in ask(git_repo, "events")["events"] if e["action"] == "hook"]
    assert names == ["SessionStart", "SessionEnd"]
    assert alive(pid)
    os.close(gate)
    settle(pid)


def test_a_start_that_cannot_pass_the_gate_is_on_disk_all_the_same(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    first = agent("first")
    first.start()
    gate = _hold_gate(state_dir)
    one = agent()
    before = time.monotonic()
    one.start()
    assert time.monotonic() - before < 10
    owner = one.variables["CORRAL_OWNER"]
    os.close(gate)
    pid = track.pid(one.server(*SLEEP))
    listed = ask(git_repo, "session", "list")["sessions"]
    (known,) = [row for row in listed if row["sessions"] == ["s-1"]]
    assert known["owner"] == owner
    assert known["life"] == "live"
    one.end()
    settle(pid)


def test_a_resumed_session_counts_before_its_start_is_taken_in(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    os.kill(one.pid, signal.SIGKILL)
    eventually(lambda: not alive(one.pid))
    gate = _hold_gate(state_dir)
    agent().start("resume")
    assert life(git_repo) == "live"
    seen = ask(git_repo, "status", "--all", env={"CORRAL_KEEPER_GRACE": "0"})
    assert seen["orphans"] == []
    assert alive(pid)
    os.close(gate)


def test_two_starts_of_one_session_at_once_are_one_owner_and_one_epoch(
    agent: MakeAgent, git_repo: Path
) -> None:
    one = agent()
    payload = one.payload("SessionStart", source="startup")
    both = f'for i in 1 2 3 4; do printf %s "$1" | {" ".join(HOOK)} claude & done; wait'
    assert one.run("sh", "-c", both, "sh", payload).status == 0
    (known,) = ask(git_repo, "session", "list")["sessions"]
    assert len(known["epochs"]) == 1
    assert len(ask(git_repo, "events")["events"]) == 4


def _more_records(state_dir: Path, owner: str, environment: str) -> None:
    """Records of fifty things of an owner that are gone."""
    now = own_identity()
    with Registry.open(str(state_dir)) as registry, registry.write() as conn:
        for number in range(50):
            gone = ProcessIdentity(now.pid, 1, now.boot_id, now.pid_namespace)
            pairs = tuple(gone._asdict().items())[:4]
            records.insert(
                conn,
                Record(
                    id=f"rec-gone-{number}",
                    kind=Kind.PROCESS,
                    backend="process",
                    role="service",
                    name="",
                    owner=owner,
                    session=None,
                    environment=environment,
                    state=RecordState.LIVE,
                    identity=pairs,
                    creator=None,
                    created_at=time.time(),
                ),
            )


def test_twenty_sessions_that_end_at_the_same_moment_leave_nothing(
    agent: MakeAgent, git_repo: Path, track: Tracker, state_dir: Path
) -> None:
    """Two hundred processes are theirs; a person's and a live session's are not."""
    persons = track.pid(start(git_repo, *SLEEP))
    living = agent("living")
    living.start()
    lives = track.pid(living.server(*SLEEP))
    agents = [agent(f"s-{number}") for number in range(20)]
    left = []
    for one in agents:
        one.start()
        left += [track.pid(int(line)) for line in one.shell(LEAVE_TEN).out.split()]
    known = _sessions(git_repo)
    _more_records(state_dir, known["s-0"]["owner"], known["s-0"]["epochs"][0]["environment"])
    assert len(left) == 200
    assert all(map(alive, left))
    _end_together(agents)
    settle(*left)
    assert alive(persons)
    assert alive(lives)
    lives_of = {session: row["life"] for session, row in _sessions(git_repo).items()}
    assert {lives_of[one.session] for one in agents} == {"over"}
    assert lives_of["living"] == "live"
    ends = [e for e in ask(git_repo, "events")["events"] if e["name"] == "SessionEnd"]
    assert len(ends) == 20


def test_a_session_with_fifty_containers_and_two_hundred_processes_leaves_nothing(
    agent: MakeAgent, git_repo: Path, private_root: Path, track: Tracker
) -> None:
    """Another one has as many; the engine is a stand-in that takes what it is told to take."""

    def removed(identifier: str) -> bytes:
        engine.states.pop(identifier, None)
        return done()

    with IllEngine(private_root / "e", removed) as engine:
        variables = {"DOCKER_HOST": f"unix://{engine.path}"}
        agents = [agent(name, environ=variables) for name in ("s-1", "other")]
        processes: list[list[int]] = []
        for number, one in enumerate(agents):
            one.start()
            lines = "".join(one.shell(LEAVE_TEN).out for _ in range(20 - 10 * number))
            processes.append([track.pid(int(line)) for line in lines.split()])
            for at in range(50):
                identifier = f"{number}{at:063d}"
                engine.states[identifier] = "running"
                engine.owners[identifier] = one.variables["CORRAL_OWNER"]
        mine, others = processes
        assert (len(mine), len(engine.states)) == (200, 100)
        before = time.monotonic()
        agents[0].quit()
        assert time.monotonic() - before < 30, "the agent does not wait for all that"
        settle()
        if life(git_repo) != "over":  # the hook had no time to write it down: that is a crash
            no_grace = {"CORRAL_KEEPER_GRACE": "0"}
            ask(git_repo, "cleanup", "--yes", env={**no_grace, **variables}, timeout=120)
        settle(*mine)
        assert all(map(alive, others))
        assert {identifier[0] for identifier in engine.states} == {"1"}
        assert len(engine.states) == 50
        seen = ask(git_repo, "status", "--all", env=variables)
        rows = [row for group in ("owned", "orphans", "unknown") for row in seen[group]]
        assert [row for row in rows if row["session"] == "s-1"] == []


def test_containers_whose_engine_is_gone_are_kept_on_record_and_said(
    agent: MakeAgent, git_repo: Path, private_root: Path, state_dir: Path, track: Tracker
) -> None:
    """A look that failed holds up nothing else."""
    one = agent("s-1")
    one.start()
    pid = track.pid(one.server(*SLEEP))
    known = _sessions(git_repo)["s-1"]
    place = f"unix://{private_root / 'gone'}"
    _container_records(state_dir, known["owner"], known["epochs"][0]["environment"], place)
    one.end()
    eventually(lambda: not alive(pid), 60)
    said = corral(git_repo, "status", "--json", check=3)
    failed = [b for b in said.data["backends"] if b["state"] == "failed"]
    assert len(failed) == 1
    assert "something recorded is there" in failed[0]["detail"]
    with Registry.open(str(state_dir)) as registry, registry.read() as conn:
        left = [r for r in records.all_(conn)[0] if r.kind is Kind.CONTAINER]
    assert len(left) == 50


def _container_records(state_dir: Path, owner: str, environment: str, place: str) -> None:
    with Registry.open(str(state_dir)) as registry, registry.write() as conn:
        for number in range(50):
            records.insert(
                conn,
                Record(
                    id=f"rec-box-{number}",
                    kind=Kind.CONTAINER,
                    backend="docker",
                    role="labelled",
                    name="",
                    owner=owner,
                    session=None,
                    environment=environment,
                    state=RecordState.LIVE,
                    identity=(("id", f"{number:064d}"), ("daemon", "D")),
                    creator=None,
                    created_at=time.time(),
                    detail=json.dumps({"place": place}),
                ),
            )


def _sessions(where: Path) -> dict[str, dict[str, Any]]:
    listed = ask(where, "session", "list")["sessions"]
    return {session: row for row in listed for session in row["sessions"]}


def _end_together(agents: list[Agent]) -> None:
    """Every agent calls its hook when a file appears."""
    go = agents[0].variables_file.parent / "go"
    hook = f'printf %s "$1" | {" ".join(HOOK)} claude'
    wait = f"while ! [ -e {go} ]; do sleep 0.01; done; {hook}"
    for one in agents:
        payload = one.payload("SessionEnd", reason="other")
        one._ask(argv=["sh", "-c", wait, "sh", payload], background=True)
    go.touch()


FULL = """
    import json, os, subprocess, sys
    root, hook, command, repo = sys.argv[1:]
    hook, command = json.loads(hook), json.loads(command)
    captured = {"text": True, "capture_output": True, "timeout": 60}
    state = os.environ["CORRAL_STATE_DIR"] = os.path.join(root, "small", "state")
    small = os.path.join(root, "small")
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    os.environ["CLAUDE_PID"] = str(os.getpid())
    os.environ["CLAUDE_CODE_SESSION_ID"] = "s-1"
    os.environ["CLAUDE_ENV_FILE"] = os.path.join(small, "variables")

    def call(event, session="s-1", **more):
        payload = {"hook_event_name": event, "session_id": session, "cwd": repo, **more}
        done = subprocess.run(hook, input=json.dumps(payload), **captured)
        return [done.returncode, done.stdout, done.stderr]

    def corral(*words):
        done = subprocess.run([*command, *words, "--json"], cwd=repo, **captured)
        return json.loads(done.stdout)

    def there(pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except OSError:
            return False

    found = {"start": call("SessionStart", source="startup")}
    run = subprocess.run([*command, "run", "--detach", "--json", "--", "sleep", "600"],
                         cwd=repo, **captured)
    pid = json.loads(run.stdout)["data"]["pid"]
    variables = open(os.environ["CLAUDE_ENV_FILE"]).read()
    filler = os.open(os.path.join(small, "filler"), os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(filler, b"x" * 4096)
    except OSError as error:
        found["full"] = error.strerror
    found["end"] = call("SessionEnd", reason="other")
    found["second start"] = call("SessionStart", "s-2", source="startup")
    found["variables"] = [variables, open(os.environ["CLAUDE_ENV_FILE"]).read()]
    found["status"] = corral("status")["result"]
    found["alive while full"] = there(pid)
    os.ftruncate(filler, 0)
    os.close(filler)
    deadline = time.monotonic() + 60
    while there(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    found["alive at the end"] = there(pid)
    found["third start"] = call("SessionStart", "s-3", source="startup")
    found["sessions"] = corral("session", "list")["data"]["sessions"]
    say(found)
"""


def test_a_full_disk_is_said_and_what_was_left_is_taken_down_later(
    git_repo: Path, private_root: Path
) -> None:
    require_engine("namespaces")
    hook, command = json.dumps([*HOOK, "claude"]), json.dumps(COMMAND)
    argv = ["unshare", "-m", *program(FULL), str(private_root), hook, command, str(git_repo)]
    found = said(argv, cwd=git_repo)
    assert found["full"] == "No space left on device"
    assert found["start"][0] == 0
    status, out, err = found["end"]
    assert (status, out) == (0, "")
    assert "No space left" in err or "full" in err
    status, out, err = found["second start"]
    assert (status, out) == (0, "")
    assert err
    before, after = found["variables"]
    assert after == before, "no half of a variable"
    assert found["status"] == "ok"
    assert found["alive while full"]
    assert not found["alive at the end"], "the other half tried again"
    lives = {row["sessions"][0]: row["life"] for row in found["sessions"]}
    assert lives["s-1"] == "over"
    assert lives["s-3"] == "live"


FULL_FROM_THE_BEGINNING = """
    import json, os, subprocess, sys
    root, hook, command, repo = sys.argv[1:]
    hook, command = json.loads(hook), json.loads(command)
    captured = {"text": True, "capture_output": True, "timeout": 60}
    small = os.path.join(root, "small")
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    os.environ["CLAUDE_PID"] = str(os.getpid())
    os.environ["CLAUDE_ENV_FILE"] = os.path.join(root, "variables")
    filler = os.open(os.path.join(small, "filler"), os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(filler, b"x" * 4096)
    except OSError as error:
        full = error.strerror

    def call(event, **more):
        payload = {"hook_event_name": event, "session_id": "s-1", "cwd": repo, **more}
        done = subprocess.run(hook, input=json.dumps(payload), **captured)
        return [done.returncode, done.stdout, done.stderr]

    found = {"full": full, "start": call("SessionStart", source="startup"),
             "end": call("SessionEnd", reason="other")}
    found["variables"] = os.path.exists(os.environ["CLAUDE_ENV_FILE"])
    os.ftruncate(filler, 0)
    found["again"] = call("SessionStart", source="startup")
    listed = subprocess.run([*command, "session", "list", "--json"], cwd=repo, **captured)
    found["sessions"] = json.loads(listed.stdout)["data"]["sessions"]
    say(found)
"""


def test_a_disk_that_is_full_from_the_beginning_fails_no_agent(
    git_repo: Path, private_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no registry yet, and none can be made."""
    require_engine("namespaces")
    monkeypatch.setenv("CORRAL_STATE_DIR", str(private_root / "small" / "state"))
    hook, command = json.dumps([*HOOK, "claude"]), json.dumps(COMMAND)
    source = program(FULL_FROM_THE_BEGINNING)
    argv = ["unshare", "-m", *source, str(private_root), hook, command, str(git_repo)]
    found = said(argv, cwd=git_repo)
    handed_over()
    assert found["full"] == "No space left on device"
    for event in ("start", "end"):
        status, out, err = found[event]
        assert (status, out) == (0, "")
        assert err.startswith("corral-hook: ")
        assert "No space left" in err or "full" in err
    assert not found["variables"], "a mark of an owner that is nowhere on record"
    assert found["again"][0] == 0
    (known,) = found["sessions"]
    assert (known["sessions"], known["life"]) == (["s-1"], "live")
