"""Columns and spool entries: what was written comes back, and garbage is an InvalidValueError."""

from __future__ import annotations

import json
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import InvalidValueError
from corral.model.owner import End
from corral.model.process import ProcessIdentity
from corral.model.resource import Kind
from corral.store import encoding, spooled

if TYPE_CHECKING:
    from collections.abc import Callable

whole = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=()))  # lone surrogates as well: paths have them
processes = st.builds(
    ProcessIdentity,
    whole,
    whole,
    texts.filter(bool),
    whole,
    st.none() | whole,
)


@given(processes)
def test_a_process_comes_back_the_same(process: ProcessIdentity) -> None:
    content = encoding.encode_process(process)
    assert content is not None
    assert content.isascii()
    assert encoding.decode_process(content) == process


@given(processes)
def test_a_process_lies_within_the_range_of_its_pid(process: ProcessIdentity) -> None:
    first, last = encoding.encoded_process_range(process.pid)
    content = encoding.encode_process(process)
    assert content is not None
    assert first <= content < last


def test_another_pid_lies_outside_the_range() -> None:
    first, last = encoding.encoded_process_range(12)
    for pid in (1, 11, 13, 120, 121, 2):
        content = encoding.encode_process(ProcessIdentity(pid, 1, "b", 1))
        assert content is not None
        assert not first <= content < last


def test_an_unknown_inode_is_left_out_and_the_rest_is_named() -> None:
    content = encoding.encode_process(ProcessIdentity(7, 8, "boot", 9))
    assert content is not None
    assert json.loads(content) == [
        ["pid", 7],
        ["start_ticks", 8],
        ["boot_id", "boot"],
        ["pid_namespace", 9],
    ]


def test_what_a_newer_corral_adds_to_a_process_is_passed_over() -> None:
    content = '[["pid",7],["start_ticks",8],["boot_id","b"],["pid_namespace",9],["cgroup","x"]]'
    assert encoding.decode_process(content) == ProcessIdentity(7, 8, "b", 9)


def test_nothing_stays_nothing() -> None:
    assert encoding.encode_process(None) is None
    assert encoding.decode_process(None) is None
    assert encoding.encode_end(None) is None
    assert encoding.decode_end(None) is None
    assert encoding.optional_text(None) is None
    assert encoding.optional_number(None) is None


GARBAGE: list[Any] = [
    "",
    "{",
    "[",
    "null",
    "{}",
    "7",
    '"pid"',
    "[7]",
    "[[]]",
    '[["pid"]]',
    '[["pid",1,2]]',
    "[[1,2]]",
    '[["pid",true]]',
    '[["pid",1.5]]',
    '[["pid",NaN]]',
    '[["pid",null]]',
    '[["pid",1],["pid",1]]',
    '[["pid",99999999999999999999]]',
    '[["pid",1]',
    "[" * 100_000,
    b"\xff\xfe",
    7,
    1.5,
]


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content)[:30])
def test_garbage_is_no_process_and_no_end(content: Any) -> None:
    for decode in (encoding.decode_process, encoding.decode_end):
        with pytest.raises(InvalidValueError):
            decode(content)
    with pytest.raises(InvalidValueError):
        encoding.decode_pairs(content)


@pytest.mark.parametrize(
    "content",
    [
        '[["start_ticks",8],["boot_id","b"],["pid_namespace",9]]',
        '[["pid","7"],["start_ticks",8],["boot_id","b"],["pid_namespace",9]]',
        '[["pid",-7],["start_ticks",8],["boot_id","b"],["pid_namespace",9]]',
        '[["pid",7],["start_ticks",8],["boot_id",""],["pid_namespace",9]]',
        '[["pid",7],["start_ticks",8],["boot_id",5],["pid_namespace",9]]',
        '[["pid",7],["start_ticks",8],["boot_id","b"],["pid_namespace",9],["pidfd_inode","x"]]',
        "[]",
    ],
)
def test_a_process_that_is_not_whole_is_refused(content: str) -> None:
    with pytest.raises(InvalidValueError):
        encoding.decode_process(content)


@given(st.lists(st.tuples(texts, texts | whole), unique_by=lambda pair: pair[0]).map(tuple))
def test_pairs_come_back_in_their_order(pairs: encoding.Pairs) -> None:
    assert encoding.decode_pairs(encoding.encode_pairs(pairs)) == pairs


@given(st.floats(0, 1e9), st.floats(0, 1e9), texts)
def test_an_end_comes_back_the_same(boottime: float, suspended: float, boot: str) -> None:
    end = End(boottime, suspended, boot)
    assert encoding.decode_end(encoding.encode_end(end)) == end


@pytest.mark.parametrize(
    "content", ["[1,2]", '["1",2,"b"]', "[1,2,3]", '[1,NaN,"b"]', '[true,2,"b"]']
)
def test_an_end_of_another_shape_is_refused(content: str) -> None:
    with pytest.raises(InvalidValueError):
        encoding.decode_end(content)


@given(texts)
def test_any_text_can_be_stored_and_comes_back(text: str) -> None:
    (stored,) = encoding.bind(text)
    if isinstance(stored, str):
        stored.encode()
    assert encoding.text(stored) == text


@given(st.integers(0, 2**64 - 1))
def test_any_inode_fits_a_column(inode: int) -> None:
    stored = encoding.encode_unsigned(inode)
    assert -(2**63) <= stored < 2**63
    assert encoding.decode_unsigned(stored) == inode


@pytest.mark.parametrize(
    ("decode", "value"),
    [
        (encoding.text, None),
        (encoding.text, 5),
        (encoding.text, b"\xff"),
        (encoding.integer, None),
        (encoding.integer, "5"),
        (encoding.integer, 5.0),
        (encoding.integer, True),
        (encoding.integer, 2**63),
        (encoding.number, "5"),
        (encoding.number, None),
        (encoding.number, True),
        (encoding.number, nan),
        (encoding.number, inf),
        (encoding.parse_object, "[]"),
        (encoding.parse_object, "{"),
        (encoding.parse_object, None),
    ],
)
def test_a_column_of_another_type_is_refused(decode: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(InvalidValueError):
        decode(value)


@pytest.mark.parametrize("value", ["", "pod", None, 5, b"process"])
def test_an_unknown_word_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValueError):
        encoding.word(Kind, value)


def test_a_release_comes_back_as_it_was_written() -> None:
    entry = {"entry": "release", "owner": "own-1", "epoch": 3, "at": 5.5, "why": "logout"}
    assert spooled.decode(spooled.encode(entry)) == spooled.Release("own-1", 3, 5.5, "logout")
    every = {**entry, "epoch": None}
    assert spooled.decode(spooled.encode(every)) == spooled.Release("own-1", None, 5.5, "logout")


def test_an_event_comes_back_with_what_it_left_out_empty() -> None:
    line = spooled.decode(
        spooled.encode({"entry": "event", "at": 5, "action": "hook", "name": "x"})
    )
    assert line == spooled.Line(5.0, "hook", "", "", "x", "", "", "", None, None)


@pytest.mark.parametrize(
    "change",
    [
        {"owner": ""},
        {"owner": None},
        {"owner": 5},
        {"epoch": "3"},
        {"epoch": 2**70},
        {"at": "now"},
        {"at": nan},
        {"why": None},
        {"entry": None},
        {"entry": 5},
    ],
)
def test_a_wrong_release_is_refused_when_it_is_written(change: dict[str, Any]) -> None:
    entry = {"entry": "release", "owner": "own-1", "epoch": 3, "at": 5.5, "why": "logout"}
    with pytest.raises(InvalidValueError):
        spooled.encode({**entry, **change})


@pytest.mark.parametrize("change", [{"action": 5}, {"at": None}, {"owner": 5}, {"detail": ["x"]}])
def test_a_wrong_event_is_refused_when_it_is_written(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        spooled.encode({"entry": "event", "at": 5, "action": "hook", **change})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b'{"entry":["x"]}'])
def test_a_torn_entry_is_not_of_an_unknown_kind(content: bytes) -> None:
    with pytest.raises(InvalidValueError) as raised:
        spooled.decode(content)
    assert not isinstance(raised.value, spooled.UnknownKindError)


def test_an_entry_of_a_newer_corral_is_of_an_unknown_kind() -> None:
    with pytest.raises(spooled.UnknownKindError):
        spooled.decode(b'{"entry": "promise", "at": 5}')
