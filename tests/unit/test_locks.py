"""The file of a lock, its holder's note, and the words for those who wait."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.locks import file_name, holder_words, note_of, read_note, scope_words
from corral.model.lock import LockHolder, LockName, LockScope

_HOLDER = LockHolder(
    pid=321,
    command="make release",
    since=1000.0,
    owner="own-1",
    session="s-1",
    directory="/home/me/repo",
)
_REPO = LockName("1.0", LockScope.REPO, "/home/me/repo/.git")
_MACHINE = LockName("1.0", LockScope.MACHINE, "")
_FOUND = {"pid": 321, "command": "ignored", "since": 1000.0}
_text = st.text(st.characters())
_names = st.builds(LockName, _text, st.sampled_from(LockScope), _text)


@given(_names, _names)
def test_two_locks_never_share_a_file(one: LockName, other: LockName) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


@given(_names)
def test_no_name_leads_out_of_the_directory(lock: LockName) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}\.lock", file_name(lock))


@pytest.mark.parametrize("lock", [_REPO, _MACHINE])
def test_a_note_comes_back_as_it_was_written(lock: LockName) -> None:
    assert read_note(_FOUND, note_of(lock, _HOLDER)) == (lock, _HOLDER)


def test_a_holder_without_a_note_is_known_by_its_pid_and_command() -> None:
    found = {"pid": 321, "command": "python drive.py"}
    assert read_note(found, {}) == (None, LockHolder(321, "python drive.py"))


@pytest.mark.parametrize(
    "more",
    [
        {"name": 1, "scope": "repo"},
        {"name": "", "scope": "repo"},
        {"name": "1.0", "scope": "galaxy"},
        {"name": "1.0", "scope": ["repo"]},
        {"name": "1.0"},
    ],
)
def test_a_note_of_another_form_names_no_lock(more: dict[str, object]) -> None:
    lock, holder = read_note({"pid": "x", "since": "then"}, {**more, "owner": 7, "words": None})
    assert lock is None
    assert holder == LockHolder(0, "")


def test_a_pid_is_no_truth_value() -> None:
    assert read_note({"pid": True}, {})[1].pid == 0


def test_the_words_tell_who_since_when_and_where() -> None:
    words = holder_words(_HOLDER, now=1180.0, at="2026-11-30 12:00:00")
    assert words == (
        "session s-1, process 321 (make release), since 2026-11-30 12:00:00 (3m), in /home/me/repo"
    )


def test_what_is_not_known_of_a_holder_is_left_out() -> None:
    assert holder_words(LockHolder(5, ""), now=0.0, at="") == "process 5"
    assert "cannot be seen" in holder_words(LockHolder(0, "x"), now=0.0, at="")


def test_a_long_command_is_cut() -> None:
    assert len(holder_words(LockHolder(5, "x" * 5000), now=0.0, at="")) < 120


def test_the_scope_in_words() -> None:
    assert scope_words(_MACHINE) == "on this machine"
    assert scope_words(_REPO) == "in all worktrees of /home/me/repo/.git"
