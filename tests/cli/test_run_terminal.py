"""In a terminal `corral run` is unnoticed: keys, job control, window size and hang-up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, alive
from support.registry import recorded
from support.terminal import PROMPT, Terminal, shell
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker

_RUN = " ".join((*COMMAND, "run", "--"))
_PROMPT = re.escape(PROMPT)

# Says its pid, its terminal and each signal; Ctrl-C thrice, or TERM, ends it.
_TALKS = """\
import os, signal, sys
count = 0
def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def say(number, frame):
    global count
    tell(signal.Signals(number).name, os.get_terminal_size().columns)
    count += number == signal.SIGINT
    if count == 3 or number == signal.SIGTERM:
        sys.exit(9)
for name in ("SIGINT", "SIGTERM", "SIGWINCH", "SIGCONT"):
    signal.signal(getattr(signal, name), say)
tell("pid", os.getpid(), os.isatty(0), os.isatty(1))
while True:
    signal.pause()
"""


@pytest.fixture
def talks(private_root: Path) -> str:
    """The command line of a program that tells what reaches it."""
    path = private_root / "talks.py"
    path.write_text(_TALKS)
    return f"{COMMAND[0]} {path}"


@pytest.fixture
def terminal(private_root: Path, track: Tracker) -> Iterator[Terminal]:
    """A terminal with bash in it."""
    with shell(track, private_root) as opened:
        yield opened


def _interrupt(terminal: Terminal) -> None:
    for _ in range(3):
        terminal.type("\x03")
        terminal.expect("SIGINT")


def _state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_key_that_interrupts_reaches_the_command_once(terminal: Terminal, talks: str) -> None:
    terminal.type(f"{_RUN} {talks}\n")
    terminal.expect(r"^pid \d+ True True")
    _interrupt(terminal)
    terminal.expect(_PROMPT)
    assert terminal.shown.count("SIGINT") == 3
    terminal.type("echo status $?\n")
    terminal.expect("^status 9")


def test_a_command_that_an_interrupt_ends_gives_130(terminal: Terminal) -> None:
    terminal.type(f"{_RUN} sh -c 'echo up; exec sleep 600'\n")
    terminal.expect("^up")
    terminal.type("\x03")
    terminal.expect(_PROMPT)
    terminal.type("echo status $?\n")
    terminal.expect("^status 130")


def test_an_interrupt_ends_a_loop_of_the_shell(terminal: Terminal) -> None:
    terminal.type(f"for n in 1 2 3; do {_RUN} sh -c 'echo up; exec sleep 600'; done; echo over\n")
    terminal.expect("^up")
    terminal.type("\x03")
    terminal.expect(_PROMPT)
    assert terminal.shown.count("\nup") == 1


def test_a_key_that_stops_stops_both_and_the_shell_continues_them(
    terminal: Terminal, talks: str
) -> None:
    terminal.type(f"{_RUN} {talks}\n")
    pid = int(terminal.expect(r"^pid (\d+)").group(1))
    for _ in range(2):
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.expect(_PROMPT)
        assert _state(pid) == "T"
        terminal.type("fg\n")
        terminal.expect("SIGCONT")
        assert _state(pid) != "T"
    _interrupt(terminal)
    terminal.expect(_PROMPT)


def test_a_stopped_job_can_be_ended_by_the_shell(
    terminal: Terminal, talks: str, state_dir: Path
) -> None:
    terminal.type(f"{_RUN} {talks}\n")
    pid = int(terminal.expect(r"^pid (\d+)").group(1))
    terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.type("kill %1; fg\n")
    terminal.expect("SIGTERM")
    eventually(lambda: not alive(pid))
    terminal.expect(_PROMPT)
    eventually(lambda: recorded(state_dir) == [])


def test_a_job_in_the_background_that_reads_is_stopped_and_can_be_brought_back(
    terminal: Terminal,
) -> None:
    terminal.type(f"{_RUN} cat &\n")
    terminal.expect(_PROMPT)
    eventually(lambda: _stopped(terminal))
    terminal.type("fg\n")
    terminal.expect("cat")  # the shell says what it brings back
    terminal.type("a line\n")
    terminal.expect("a line")  # the echo
    terminal.expect("a line")
    terminal.type("\x04")
    terminal.expect(_PROMPT)
    terminal.type("echo status $?\n")
    terminal.expect("^status 0")


def _stopped(terminal: Terminal) -> bool:
    terminal.type("jobs; echo done\n")
    terminal.expect("^done")
    return "Stopped" in terminal.shown


def test_a_shell_within_keeps_its_own_job_control(terminal: Terminal) -> None:
    terminal.type(f"PS1='inner> ' {_RUN} bash --norc --noprofile -i\n")
    terminal.expect("^inner> ")
    terminal.type("sh -c 'echo up; exec sleep 600'\n")
    terminal.expect("^up")
    terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.expect("^inner> ")
    # bash has to have noticed the end itself, or it will not exit: "There are stopped jobs".
    terminal.type("kill -KILL %1; while jobs %1 2>/dev/null; do sleep 0.05; done; echo gone\n")
    terminal.expect("^gone")
    terminal.type("exit 6\n")
    terminal.expect(_PROMPT)
    terminal.type("echo status $?\n")
    terminal.expect("^status 6")


def test_a_shell_within_can_suspend_itself(terminal: Terminal) -> None:
    terminal.type(f"PS1='inner> ' {_RUN} bash --norc --noprofile -i\n")
    terminal.expect("^inner> ")
    terminal.type("suspend\n")
    terminal.expect("Stopped")
    terminal.expect(_PROMPT)
    terminal.type("fg\n")
    terminal.expect("inner> ")
    terminal.type("echo still here\n")
    terminal.expect("^still here")
    terminal.type("exit 0\n")
    terminal.expect(_PROMPT)


def test_a_new_size_of_the_window_reaches_the_command_once(terminal: Terminal, talks: str) -> None:
    terminal.type(f"{_RUN} {talks}\n")
    terminal.expect("^pid")
    terminal.resize(30, 111)
    terminal.expect("SIGWINCH 111")
    _interrupt(terminal)
    terminal.expect(_PROMPT)
    assert terminal.shown.count("SIGWINCH") == 1


def test_a_terminal_that_goes_away_ends_the_command_and_its_record(
    terminal: Terminal, state_dir: Path
) -> None:
    terminal.type(f"{_RUN} sh -c 'echo pid $$; exec sleep 600'\n")
    pid = int(terminal.expect(r"^pid (\d+)").group(1))
    terminal.hang_up()
    eventually(lambda: not alive(pid))
    eventually(lambda: recorded(state_dir) == [])


def test_a_pipeline_in_a_terminal_ends_as_one_job(terminal: Terminal) -> None:
    terminal.type(f"{_RUN} sh -c 'echo up >&2; exec sleep 600' | cat\n")
    terminal.expect("^up")
    terminal.type("\x03")
    terminal.expect(_PROMPT)
    terminal.type("jobs; echo nothing\n")
    terminal.expect(r"nothing\r\nnothing")


def test_a_run_within_a_run_is_stopped_and_continued_as_one(terminal: Terminal, talks: str) -> None:
    terminal.type(f"{_RUN} {_RUN} {talks}\n")
    pid = int(terminal.expect(r"^pid (\d+)").group(1))
    terminal.type("\x1a")
    terminal.expect("Stopped")
    terminal.expect(_PROMPT)
    assert _state(pid) == "T"
    terminal.type("fg\n")
    terminal.expect("SIGCONT")
    _interrupt(terminal)
    terminal.expect(_PROMPT)
    terminal.type("echo status $?\n")
    terminal.expect("^status 9")
