from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from corral.backends import _command
from corral.errors import EnumerationError

if TYPE_CHECKING:
    from pathlib import Path


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def pid_in(path: Path) -> int:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.01)
    raise AssertionError(f"{path} was never written")


def test_code_and_both_outputs_come_back() -> None:
    done = _command.run(["sh", "-c", "echo out; echo first >&2; echo err >&2; exit 7"], timeout=5)
    assert done == (7, "out\n", "first\nerr\n")
    assert done.last_line == "err"


def test_the_words_of_a_failure_may_stand_on_stdout() -> None:
    assert _command.run(["sh", "-c", "echo only; exit 1"], timeout=5).last_line == "only"
    assert not _command.run(["true"], timeout=5).last_line


def test_a_signal_is_a_negative_code() -> None:
    assert _command.run(["sh", "-c", "kill -9 $$"], timeout=5).returncode == -9


def test_a_program_that_is_not_there_is_told_apart_from_one_that_fails() -> None:
    with pytest.raises(_command.ProgramMissingError, match="no-such-program"):
        _command.run(["no-such-program"], timeout=5)


def test_a_file_that_may_not_be_executed_is_missing_too(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(_command.ProgramMissingError, match="Permission denied"):
        _command.run([str(program)], timeout=5)


def test_a_missing_directory_is_not_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(EnumerationError, match="nowhere"):
        _command.run(["true"], timeout=5, cwd=str(tmp_path / "nowhere"))


def test_a_program_beyond_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "child"
    script = f"trap '' TERM; sleep 600 & echo $! > {note}; wait"
    before = time.monotonic()
    with pytest.raises(_command.CommandTimeoutError, match=r"sh did not end within 0\.5 s"):
        _command.run(["sh", "-c", script], timeout=0.5)
    assert time.monotonic() - before < 3
    assert gone(pid_in(note))


def test_a_program_that_closed_its_output_still_has_a_time_limit() -> None:
    with pytest.raises(_command.CommandTimeoutError):
        _command.run(["sh", "-c", "exec >&- 2>&-; sleep 600"], timeout=0.3)


def test_a_child_that_holds_the_pipes_does_not_hold_the_caller(tmp_path: Path) -> None:
    note = tmp_path / "child"
    script = f"sleep 600 & echo $! > {note}; echo done"
    before = time.monotonic()
    try:
        assert _command.run(["sh", "-c", script], timeout=30) == (0, "done\n", "")
        assert time.monotonic() - before < 5
    finally:
        os.kill(pid_in(note), 9)


def test_endless_output_is_cut_off() -> None:
    with pytest.raises(_command.OutputLimitError, match="more than 1000 bytes"):
        _command.run(["sh", "-c", "while :; do echo yyyyyyyyyy; done"], timeout=20, limit=1000)


def test_large_output_on_both_pipes_does_not_deadlock() -> None:
    script = "head -c 300000 /dev/zero | tr '\\0' a; head -c 300000 /dev/zero | tr '\\0' b >&2"
    done = _command.run(["sh", "-c", script], timeout=10)
    assert (len(done.stdout), len(done.stderr)) == (300000, 300000)


def test_the_environment_is_replaced_and_nothing_is_read() -> None:
    env = {"PATH": os.environ["PATH"], "ONLY": "this"}
    done = _command.run(
        ["sh", "-c", "cat; env | grep ONLY; env | grep -c HOME"], timeout=5, env=env
    )
    assert done.stdout == "ONLY=this\n0\n"


def test_undecodable_output_is_replaced() -> None:
    assert _command.run(["printf", "a\\377b"], timeout=5).stdout == "a\N{REPLACEMENT CHARACTER}b"


def test_a_stream_is_a_socket_to_the_program_and_ends_with_it() -> None:
    stream = _command.connect(["sh", "-c", "echo trouble >&2; exec cat"])
    stream.socket.settimeout(5)
    stream.socket.sendall(b"ping")
    assert stream.socket.recv(100) == b"ping"
    assert stream.complaint() == "trouble"
    stream.close()
    assert gone(stream.process.pid)


def test_a_stream_to_a_missing_program_is_typed() -> None:
    with pytest.raises(_command.ProgramMissingError):
        _command.connect(["no-such-program"])
