"""Identities as plain pairs, and what a record of one may look like."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import EnumerationError, InvalidValueError
from corral.kernel.identity import ProcessGoneError, compare, decode_identity, encode_identity
from corral.model.process import ProcessIdentity

_KNOWN = ProcessIdentity(4711, 123456, "boot-1", 4026531836, 99)
_NUMBERS = st.integers(min_value=0, max_value=2**63)

identities = st.builds(
    ProcessIdentity,
    st.integers(min_value=1, max_value=2**31 - 1),
    _NUMBERS,
    st.text(min_size=1),
    _NUMBERS,
    st.none() | _NUMBERS,
)


@given(identities)
def test_an_identity_comes_back_from_its_pairs_and_from_json(identity: ProcessIdentity) -> None:
    pairs = encode_identity(identity)
    assert decode_identity(pairs) == identity
    assert decode_identity(dict(pairs)) == identity
    assert decode_identity(json.loads(json.dumps(pairs))) == identity


def test_an_unknown_inode_is_left_out() -> None:
    assert "pidfd_inode" not in dict(encode_identity(_KNOWN._replace(pidfd_inode=None)))


def test_what_a_newer_version_added_is_ignored() -> None:
    assert decode_identity({**dict(encode_identity(_KNOWN)), "cgroup": 7}) == _KNOWN


@pytest.mark.parametrize(
    "wrong",
    [
        {"pid": 0},
        {"pid": -1},
        {"pid": 2**31},
        {"pid": True},
        {"pid": "4711"},
        {"pid": 4711.0},
        {"pid": None},
        {"start_ticks": -1},
        {"start_ticks": None},
        {"boot_id": ""},
        {"boot_id": None},
        {"boot_id": 5},
        {"pid_namespace": None},
        {"pidfd_inode": "99"},
        {"pidfd_inode": -1},
    ],
)
def test_a_wrong_part_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        decode_identity({**dict(encode_identity(_KNOWN)), **wrong})


@pytest.mark.parametrize("nonsense", [(), {}, [1, 2], ["ab", "cd"], [("pid", 1)], 7, None])
def test_what_is_no_identity_is_refused(nonsense: object) -> None:
    with pytest.raises(InvalidValueError):
        decode_identity(nonsense)  # type: ignore[arg-type]


def test_the_same_process_compares_equal_with_and_without_inode() -> None:
    bare = _KNOWN._replace(pidfd_inode=None)
    for recorded in (_KNOWN, bare):
        for found in (_KNOWN, bare):
            compare(recorded, found)


@pytest.mark.parametrize(
    "found",
    [
        _KNOWN._replace(start_ticks=123457, pidfd_inode=None),
        _KNOWN._replace(start_ticks=123457, pidfd_inode=100),
        _KNOWN._replace(pidfd_inode=100),
    ],
)
def test_another_process_with_the_same_pid_is_proof_of_the_end(found: ProcessIdentity) -> None:
    with pytest.raises(ProcessGoneError, match="given to another process"):
        compare(_KNOWN, found)


def test_one_inode_with_two_start_times_proves_nothing() -> None:
    with pytest.raises(EnumerationError) as caught:
        compare(_KNOWN, _KNOWN._replace(start_ticks=123457))
    assert caught.value.resource == "4711"
