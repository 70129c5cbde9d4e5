"""`corral cleanup` and `corral down` ask a person in a terminal, and act on yes only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, alive, ask, corral, start
from support.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

SLEEP = (COMMAND[0], "-c", "import signal; signal.pause()")
NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}


def _orphan(where: Path, track: Tracker) -> int:
    worker = track.spawn(SLEEP)
    corral(where, "session", "start", "--session", "agent", "--anchor", str(worker.pid))
    pid = track.pid(start(where, *SLEEP, name="left", env={"CORRAL_SESSION": "agent"}))
    worker.kill()
    worker.wait()
    return pid


@pytest.mark.parametrize(("answer", "lives"), [("n", True), ("", True), ("y", False)])
def test_cleanup_acts_on_yes_only(
    git_repo: Path, track: Tracker, answer: str, *, lives: bool
) -> None:
    pid = _orphan(git_repo, track)
    with Terminal(track, [*COMMAND, "cleanup"], git_repo, **NO_GRACE) as terminal:
        terminal.expect("agent")
        terminal.expect("take these down")
        assert "\\x1b" not in terminal.shown
        terminal.type(f"{answer}\n")
        terminal.expect("nothing was done" if lives else "removed")
        assert terminal.process.wait(30) == 0
    assert alive(pid) is lives


@pytest.mark.parametrize(("answer", "there"), [("n", True), ("yes", False)])
def test_down_asks_before_data_goes(
    git_repo: Path, track: Tracker, answer: str, *, there: bool
) -> None:
    up = ask(git_repo, "up", "--port", "web", "--db", "file")
    with Terminal(track, [*COMMAND, "down"], git_repo) as terminal:
        terminal.expect("go on")
        terminal.type(f"{answer}\n")
        assert terminal.process.wait(30) == 0
    seen = ask(git_repo, "status")["environment"]
    assert (seen is not None and seen["id"] == up["environment"]["id"]) is there
