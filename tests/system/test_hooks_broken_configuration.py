"""A session ends where nobody can tell what is protected: left, said, and taken later."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from support.agents import handed_over, settle
from support.command import alive, ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
BROKEN = "[protect]\nprograms = ["


def reasons(where: Path) -> list[str]:
    """What the journal says of nothing that is taken down."""
    told = [e["detail"] for e in ask(where, "events")["events"]]
    return [detail for detail in told if "nothing is taken down" in detail]


def test_what_is_left_for_a_broken_file_is_said_and_taken_after_its_repair(
    agent: MakeAgent, git_repo: Path, private_root: Path, track: Tracker
) -> None:
    one = agent()
    one.start()
    pid = track.pid(one.server(*SLEEP))
    (git_repo / "corral.toml").write_text(BROKEN)
    one.end()
    handed_over()
    assert alive(pid)
    (told,) = reasons(private_root)
    assert str(git_repo / "corral.toml") in told
    (git_repo / "corral.toml").write_text("")
    other = agent("s-2")
    other.start()
    other.end()
    settle(pid)
    assert not alive(pid)


def test_a_broken_file_where_the_session_was_too_leaves_its_things_and_no_others(
    agent: MakeAgent, private_root: Path, track: Tracker
) -> None:
    elsewhere = private_root / "elsewhere"
    elsewhere.mkdir()
    one, other = agent(), agent("s-2")
    for each in (one, other):
        each.start()
    here, there = one.server(*SLEEP), one.server(*SLEEP, cwd=elsewhere)
    others = other.server(*SLEEP)
    for pid in (here, there, others):
        track.pid(pid)
    (elsewhere / "corral.toml").write_text(BROKEN)
    one.end()
    handed_over()
    assert alive(here)
    assert alive(there)
    other.end()
    settle(others)
    (told,) = reasons(private_root)
    assert str(elsewhere / "corral.toml") in told
    (elsewhere / "corral.toml").unlink()
    third = agent("s-3")
    third.start()
    third.end()
    settle(here, there)
