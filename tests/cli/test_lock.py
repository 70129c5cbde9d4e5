"""`corral lock` and `corral locks` as a user types them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral, pids
from support.processes import carrying
from support.terminal import Terminal
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a death")

_SAY_AND_SLEEP = ("sh", "-c", "echo $$; exec sleep 600")


@pytest.fixture
def place(private_root: Path) -> Path:
    """A plain directory."""
    directory = private_root / "place"
    directory.mkdir()
    return directory


def _start(track: Tracker, place: Path, *words: str, **options: Any) -> subprocess.Popen[str]:
    """`corral lock WORDS` that goes on; its stdin is a pipe."""
    return track.spawn(
        [*COMMAND, "lock", *words],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def _free(place: Path, name: str = "v1.0", *words: str) -> bool:
    return corral(place, "lock", name, *words, "--", "true", check=None).status == 0


@pytest.mark.parametrize("status", [0, 1, 3, 4, 255])
def test_the_exit_status_is_the_commands(place: Path, status: int) -> None:
    done = corral(place, "lock", "v1.0", "--", "sh", "-c", f"exit {status}", check=None)
    assert done.status == status


def test_nothing_is_added_to_what_the_command_reads_and_writes(place: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "lock", "x", "--", "sh", "-c", "cat; echo words >&2"],
        cwd=place,
        input="in\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("in\n", "words\n")


def test_options_may_stand_anywhere_before_the_command(place: Path) -> None:
    say = ("sh", "-c", 'echo "$@"', "sh", "--wait", "--", "-x")
    for words in (
        ("x", "--wait", "1", "--scope", "machine", "--", *say),
        ("--wait", "1", "x", "--scope", "machine", "--", *say),
        ("--scope=machine", "--wait=1s", "x", "--", *say),
    ):
        assert corral(place, "lock", *words).out == "--wait -- -x\n"


def test_the_fence_is_exported_and_grows(place: Path) -> None:
    said = [
        int(corral(place, "lock", name, "--", "sh", "-c", "echo $CORRAL_FENCE").out)
        for name in ("v1", "v2", "v1")
    ]
    assert said == sorted(set(said))


def test_contended_is_refused_and_names_the_holder(place: Path, track: Tracker) -> None:
    environ = {**os.environ, "CORRAL_SESSION": "driver-7"}
    holder = _start(track, place, "v1.0", "--", *_SAY_AND_SLEEP, env=environ)
    _line(holder)
    done = corral(place, "lock", " V1.0", "--json", "--", "touch", "ran", check=4)
    assert done.document["result"] == "failed"
    (problem,) = done.document["problems"]
    assert problem["code"] == "held"
    for part in ("session driver-7", f"process {holder.pid}", "sleep 600", "since", str(place)):
        assert part in problem["message"]
    assert "--wait" in problem["remedy"]
    assert not (place / "ran").exists()


def test_worktrees_of_one_clone_contend_and_other_clones_do_not(
    git_repo: Path, worktree: Callable[[str], Path], place: Path, track: Tracker
) -> None:
    _line(_start(track, git_repo, "v1.0", "--", *_SAY_AND_SLEEP))
    other = worktree("other")
    assert not _free(other)
    assert not _free(other, "v 1.0")
    assert _free(other, "v10")
    assert _free(place)
    assert _free(other, "v1.0", "--scope", "machine")


def test_waiting_ends_with_the_holder_or_with_its_time(place: Path, track: Tracker) -> None:
    holder = _start(track, place, "v1.0", "--", *_SAY_AND_SLEEP)
    _line(holder)
    assert corral(place, "lock", "v1.0", "--wait", "0.2", "--", "true", check=None).status == 4
    waiter = _start(track, place, "v1.0", "--wait", "60s", "--", "echo", "mine")
    holder.kill()
    assert _line(waiter) == "mine"
    assert waiter.wait(10) == 0


@linux_only
def test_a_killed_supervisor_frees_the_lock_and_tells_the_command(
    place: Path, track: Tracker
) -> None:
    holder = _start(track, place, "v1.0", "--", *_SAY_AND_SLEEP)
    command = int(_line(holder))
    holder.kill()
    holder.wait()
    assert _free(place)
    assert eventually(lambda: not alive(command))


@linux_only
def test_the_command_is_told_also_when_it_handles_term(place: Path, track: Tracker) -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (open('told', 'w').close(), os._exit(0)))\n"
        "print(os.getpid(), flush=True)\n"
        "while True: signal.pause()\n"
    )
    holder = _start(track, place, "v1.0", "--", sys.executable, "-c", program)
    _line(holder)
    holder.kill()
    holder.wait()
    assert eventually((place / "told").exists)


def test_the_command_and_what_it_forks_never_have_the_lock(place: Path, track: Tracker) -> None:
    program = (
        "import os, time\n"
        "pid = os.fork()\n"
        "if not pid: os.setsid()\n"
        "else: print(pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    holder = _start(track, place, "v1.0", "--", sys.executable, "-c", program)
    child = track.pid(int(_line(holder)))
    holder.kill()
    holder.wait()
    assert _free(place)
    assert alive(child)


@linux_only
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_killed_at_any_moment_it_leaves_neither_a_lock_nor_a_command(
    place: Path, state_dir: Path, track: Tracker, soak_seconds: float
) -> None:
    end, rounds = time.monotonic() + soak_seconds, 0
    while time.monotonic() < end or rounds < 3:
        holder = _start(track, place, "v1.0", "--wait", "20", "--", "sleep", "600")
        time.sleep(random.uniform(0, 0.4))  # the moment that this round is about
        holder.kill()
        holder.wait()
        rounds += 1
        assert eventually(lambda: not list(carrying("CORRAL_STATE_DIR", str(state_dir))))
        assert _free(place)


def test_what_the_command_left_running_ends_before_the_lock_goes(place: Path) -> None:
    script = (
        "sleep 600 & echo $!; setsid sleep 600 & echo $!; "
        "(trap '' TERM; echo > deaf; while :; do sleep 0.1; done) & echo $!; "
        "until [ -e deaf ]; do sleep 0.01; done"
    )
    done = corral(place, "lock", "v1.0", "--", "sh", "-c", script)
    left = [int(word) for word in done.out.split()]
    assert len(left) == 3
    assert not any(alive(pid) for pid in left)
    assert done.err == ""
    assert {e["trigger"] for e in ask(place, "events")["events"]} == {"lock"}


def test_a_detached_service_that_the_command_starts_goes_on(place: Path) -> None:
    run = f"{' '.join(COMMAND)} run --detach --name web -- sleep 600"
    corral(place, "lock", "v1.0", "--", "sh", "-c", run)
    (service,) = pids(ask(place, "status")["owned"])
    assert alive(service)
    corral(place, "stop", "web")


def test_the_command_is_owned_while_it_runs(place: Path, track: Tracker) -> None:
    holder = _start(track, place, "v1.0", "--", *_SAY_AND_SLEEP)
    command = int(_line(holder))
    assert pids(ask(place, "status")["owned"]) == {command}
    corral(place, "reap")
    assert holder.wait(10) == 128 + signal.SIGTERM
    assert _free(place)


def test_a_signal_to_the_holder_reaches_the_command(place: Path, track: Tracker) -> None:
    holder = _start(track, place, "v1.0", "--", *_SAY_AND_SLEEP)
    _line(holder)
    holder.send_signal(signal.SIGTERM)
    assert holder.wait(10) == 128 + signal.SIGTERM


def test_a_lock_within_the_same_lock_is_told_so(place: Path) -> None:
    inner = (*COMMAND, "lock", "v1.0", "--", "true")
    done = corral(place, "lock", "1.0", "--", *inner, check=4)
    assert "this command runs below it" in done.err
    assert corral(place, "lock", "outer", "--", *inner).status == 0


def test_a_command_that_cannot_be_executed_leaves_the_lock_free(place: Path) -> None:
    assert corral(place, "lock", "v1.0", "--", "no-such-program", check=None).status == 127
    (place / "file").write_text("")
    assert corral(place, "lock", "v1.0", "--", "./file", check=None).status == 126
    assert _free(place)


@pytest.mark.parametrize(
    "words",
    [
        ("", "--", "true"),
        ("\t", "--", "true"),
        ("--", "true"),
        ("x", "--scope", "galaxy", "--", "true"),
        ("x", "--scope", "repo", "--", "true"),
        ("x", "--wait", "soon", "--", "true"),
        ("x", "--wait", "-1", "--", "true"),
        ("x", "--unknown", "--", "true"),
        ("x", "--", ""),
    ],
)
def test_a_wrong_use_is_refused(place: Path, words: tuple[str, ...]) -> None:
    assert corral(place, "lock", *words, check=None).status == 2


def test_what_cannot_be_locked_is_not_contended(place: Path, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "locks").write_text("")
    done = corral(place, "lock", "v1.0", "--json", "--", "true", check=2)
    assert [p["code"] for p in done.document["problems"]] == ["state-directory"]


def test_without_a_command_it_is_held_until_stdin_ends(place: Path, track: Tracker) -> None:
    holder = _start(track, place, "v1.0")
    fence = int(_line(holder))
    assert not _free(place)
    (row,) = ask(place, "locks")["locks"]
    assert (row["fence"], row["holder"]["pid"]) == (fence, holder.pid)
    assert holder.stdin is not None
    holder.stdin.write("anything\n")
    holder.stdin.close()
    assert holder.wait(10) == 0
    assert _free(place)


def test_the_document_is_there_once_it_is_held(place: Path, track: Tracker) -> None:
    holder = _start(track, place, "v1.0", "--json")
    found = json.loads(_line(holder))
    assert (found["command"], found["result"], found["data"]["name"]) == ("lock", "ok", "1.0")
    assert not _free(place)
    holder.kill()
    holder.wait()
    assert _free(place)


def test_in_a_terminal_it_is_held_until_ctrl_d(place: Path, track: Tracker) -> None:
    with Terminal(track, [*COMMAND, "lock", "v1.0"], place) as terminal:
        terminal.expect(r"until stdin ends \(Ctrl-D\)")
        assert not _free(place)
        terminal.type("\x04")
        assert terminal.process.wait(10) == 0
        assert _free(place)


def test_without_a_command_and_without_an_end_it_is_refused(place: Path) -> None:
    assert "stdin" in corral(place, "lock", "v1.0", check=2).err


def test_locks_shows_who_holds_what(place: Path, git_repo: Path, track: Tracker) -> None:
    assert ask(place, "locks") == {"locks": []}
    assert corral(place, "locks").out == "no lock is held\n"
    one = _start(track, git_repo, "v1.0", "--", *_SAY_AND_SLEEP)
    two = _start(track, place, "deploy")
    _line(one)
    _line(two)
    machine, repo = sorted(ask(place, "locks")["locks"], key=lambda row: str(row["scope"]))
    assert (repo["name"], repo["scope"]) == ("1.0", "repo")
    assert repo["place"] == str(git_repo / ".git")
    assert repo["holder"]["command"] == " ".join(_SAY_AND_SLEEP)
    assert repo["holder"]["directory"] == str(git_repo)
    assert (machine["name"], machine["scope"], machine["place"]) == ("deploy", "machine", None)
    shown = corral(place, "locks").out
    for part in ("1.0", "deploy", f"process {one.pid}", f"process {two.pid}", str(git_repo)):
        assert part in shown
