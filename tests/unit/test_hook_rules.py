"""What a hook's payload means, whose a session is, and which epochs its end releases."""

from __future__ import annotations

import json

import pytest

from corral.decide.hooks import ended_epochs, journal_line, payload_in, payload_of
from corral.decide.sessions import continued_epoch, owner_living_in, parent_of, session_fault
from corral.model.hook import Caller, Payload
from corral.model.owner import Epoch, Owner
from corral.model.process import ProcessIdentity

GOOD = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/w", "source": "startup"}


def test_a_documented_payload_is_understood() -> None:
    assert payload_of(GOOD) == Payload("SessionStart", "s", "/w", "startup")
    assert payload_in(json.dumps(GOOD).encode()) == payload_of(GOOD)
    assert payload_in(json.dumps(GOOD).encode()) == payload_of(GOOD)
    ended = {**GOOD, "hook_event_name": "SessionEnd", "reason": "x" * 300}
    assert payload_of(ended) == Payload("SessionEnd", "s", "/w", "x" * 200)
    assert payload_of({**GOOD, "source": 5}) == Payload("SessionStart", "s", "/w", "")


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {**GOOD, "session_id": None},
        {**GOOD, "session_id": " "},
        {**GOOD, "hook_event_name": ""},
        {**GOOD, "cwd": "relative"},
        {**GOOD, "cwd": "/a\0b"},
        {**GOOD, "cwd": "/" + "x" * 5000},
        {**GOOD, "cwd": "/\ud800"},
    ],
)
def test_anything_else_is_not(wrong: object) -> None:
    assert payload_of(wrong) is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_document_are_not_understood(content: bytes) -> None:
    assert payload_in(content) is None


@pytest.mark.parametrize("session", ["", " ", "x" * 1025, "a\0b", "\ud800"])
def test_a_session_id_that_can_own_nothing_says_why(session: str) -> None:
    assert session_fault(session)
    assert session_fault("any other") == ""


HERE = ProcessIdentity(10, 100, "boot", 1)
THERE = ProcessIdentity(20, 200, "boot", 1)
CALLER = Caller(((11, 110), (10, 100)), "boot", 1)


def epoch(
    anchor: ProcessIdentity | None, *, number: int = 1, released: float | None = None
) -> Epoch:
    return Epoch(number, "own", "env", "claude", 0.0, "boot", anchor, released, "", None)


def owner(*epochs: Epoch) -> Owner:
    return Owner("own", None, None, 0.0, ("s",), epochs)


END = Payload("SessionEnd", "s", "/w", "other")


def test_an_end_releases_the_callers_epochs_and_no_others() -> None:
    mine, other, past = epoch(HERE), epoch(THERE, number=2), epoch(HERE, number=3, released=1.0)
    assert ended_epochs(END, owner(mine, other, past), CALLER) == (mine,)
    named = CALLER._replace(above=(), agent_pid=20)
    assert ended_epochs(END, owner(mine, other), named) == (other,)


def test_without_an_own_anchor_the_epochs_without_one_are_meant() -> None:
    loose, other = epoch(None), epoch(THERE, number=2)
    assert ended_epochs(END, owner(loose, other), CALLER) == (loose,)
    far = CALLER._replace(boot_id="other")
    assert ended_epochs(END, owner(epoch(HERE)), far) == ()


@pytest.mark.parametrize(
    "payload",
    [None, END._replace(why="clear"), END._replace(why="resume"), Payload("X", "s", "/", "")],
)
def test_what_is_no_end_releases_nothing(payload: Payload | None) -> None:
    assert ended_epochs(payload, owner(epoch(HERE)), CALLER) == ()
    assert ended_epochs(END, None, CALLER) == ()


def test_every_call_has_its_line() -> None:
    assert journal_line(END, "claude", 5.0, owner="own")["detail"] == "other"
    assert "not understood" in journal_line(None, "codex", 5.0)["detail"]
    assert journal_line(END, "claude", 5.0, detail="busy")["detail"] == "busy"


def test_a_new_id_in_the_same_process_is_the_same_owner() -> None:
    assert owner_living_in(HERE, "claude", [epoch(None), epoch(THERE), epoch(HERE)]) == "own"
    assert owner_living_in(HERE, "codex", [epoch(HERE)]) is None
    assert owner_living_in(None, "claude", [epoch(HERE)]) is None


def test_a_start_goes_on_with_an_open_epoch_of_its_anchor_and_place() -> None:
    mine = epoch(HERE)
    known = owner(epoch(HERE, released=1.0), epoch(THERE), mine)
    assert continued_epoch(known, HERE, "env", "boot") == mine
    assert continued_epoch(known, HERE, "elsewhere", "boot") is None
    assert continued_epoch(known, HERE, "env", "another boot") is None
    assert continued_epoch(owner(epoch(None)), None, "env", "boot") == epoch(None)
    assert continued_epoch(owner(epoch(None)), HERE, "env", "boot") is None


def test_the_parent_is_the_other_owner_whose_anchor_stands_nearest() -> None:
    outer = epoch(HERE)._replace(owner="outer")
    farther = epoch(THERE)._replace(owner="farther")
    above = ((10, 100), (20, 200))
    assert parent_of("own", None, above, [farther, outer, epoch(None)]) == "outer"
    assert parent_of("own", HERE, above, [outer, farther]) == "farther"
    assert parent_of("outer", None, ((10, 100),), [outer]) is None
