"""A service's log stays small, and a reader that follows it loses nothing that it could see."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from corral.errors import StateDirectoryError
from corral.services.service_log import (
    cut_log,
    follow,
    last_lines,
    log_path,
    open_log,
    previous,
    start_log,
    tail,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def path(private_root: Path) -> str:
    """Where a log is, in an environment's directory."""
    (private_root / "environment").mkdir()
    return log_path(str(private_root / "environment"), "web")


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _each(*steps: Callable[[], object]) -> Callable[[], bool]:
    """What happens at each pause of a reader; the service has ended after the last."""
    left = list(steps)

    def wait() -> bool:
        if left:
            left.pop(0)()
        return not left

    return wait


def test_a_log_is_private_and_begins_empty(path: str) -> None:
    os.close(start_log(path))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert _read(path) == b""


def test_a_new_start_keeps_the_log_before_it(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"first\n")
    os.close(start_log(path))
    assert _read(path) == b""
    assert _read(previous(path)) == b"first\n"
    os.close(start_log(path))
    assert _read(previous(path)) == b"first\n"


def test_a_symlink_in_its_place_is_not_followed(path: str, private_root: Path) -> None:
    victim = private_root / "victim"
    victim.write_text("precious")
    os.close(start_log(path))
    os.unlink(path)
    os.symlink(victim, path)
    assert open_log(path) is None
    os.close(start_log(path))
    assert victim.read_text() == "precious"
    assert not os.path.islink(path)


def test_a_log_that_cannot_be_written_is_an_error_with_a_remedy(private_root: Path) -> None:
    (private_root / "environment").write_text("no directory")
    with pytest.raises(StateDirectoryError, match="cannot be written"):
        start_log(log_path(str(private_root / "environment"), "web"))


def test_a_log_does_not_bring_a_removed_environment_back(private_root: Path) -> None:
    with pytest.raises(StateDirectoryError, match="cannot be written"):
        start_log(log_path(str(private_root / "environment"), "web"))
    assert not (private_root / "environment").exists()


def test_a_log_within_its_limit_is_left_alone(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"x" * 100)
    assert not cut_log(path, 100)
    assert not os.path.exists(previous(path))


def test_a_log_beyond_its_limit_is_moved_and_the_writer_goes_on_at_the_start(path: str) -> None:
    writer = start_log(path)
    try:
        os.write(writer, b"x" * 101)
        assert cut_log(path, 100)
        os.write(writer, b"more")
    finally:
        os.close(writer)
    assert _read(previous(path)) == b"x" * 101
    assert _read(path) == b"more"
    assert stat.S_IMODE(os.stat(previous(path)).st_mode) == 0o600


def test_of_a_log_that_outgrew_twice_its_limit_the_end_is_kept(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"a" * 500 + b"b" * 100)
    assert cut_log(path, 100)
    assert _read(previous(path)) == b"b" * 100


def test_the_last_lines_are_few_and_readable(path: str) -> None:
    assert last_lines(path) == ""
    os.close(start_log(path))
    _write(path, b"".join(b"line %d\n" % n for n in range(1000)) + b"\xff\n")
    assert last_lines(path, 3) == "line 998\nline 999\n\ufffd"
    assert tail(path, 3) == b"\n\xff\n"


def test_a_reader_gets_what_is_appended_until_the_end(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"one\n")
    got: list[bytes] = []
    follow(path, got.append, _each(lambda: _write(path, b"two\n"), lambda: _write(path, b"three")))
    assert b"".join(got) == b"one\ntwo\nthree"


def test_a_reader_that_waits_for_a_log_gets_it(path: str) -> None:
    got: list[bytes] = []

    def begin() -> None:
        os.close(start_log(path))
        _write(path, b"there")

    follow(path, got.append, _each(begin))
    assert b"".join(got) == b"there"


def test_a_reader_loses_nothing_when_the_log_is_cut(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"a" * 60)
    got: list[bytes] = []

    def cut() -> None:
        _write(path, b"b" * 60)
        cut_log(path, 100)
        _write(path, b"c" * 10)

    follow(path, got.append, _each(cut, lambda: _write(path, b"d")))
    assert b"".join(got) == b"a" * 60 + b"b" * 60 + b"c" * 10 + b"d"


def test_a_reader_goes_on_with_the_log_of_the_next_start(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"old\n")
    got: list[bytes] = []

    def again() -> None:
        _write(path, b"last\n")
        os.close(start_log(path))
        _write(path, b"new\n")

    follow(path, got.append, _each(again, lambda: None))
    assert b"".join(got) == b"old\nlast\nnew\n"


def test_control_characters_are_passed_on_as_they_are(path: str) -> None:
    os.close(start_log(path))
    _write(path, b"\x1b[31mred\x1b[0m\x00\xff")
    got: list[bytes] = []
    follow(path, got.append, lambda: True)
    assert b"".join(got) == b"\x1b[31mred\x1b[0m\x00\xff"
