"""The texts of /proc, as hostile as a process can make them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import EnumerationError
from corral.kernel.procfs import parse_argv, parse_marks
from corral.kernel.procstat import parse_stat

_REST = b"1 7 7 34816 7 4194560 1 2 3 4 5 6 7 8 20 0 3 0 115413 90435584 2775 0"


def line(comm: bytes = b"sh", state: bytes = b"S", rest: bytes = _REST) -> bytes:
    return b"4711 (" + comm + b") " + state + b" " + rest + b"\n"


def test_a_stat_line_tells_parents_terminal_and_start() -> None:
    stat = parse_stat(line())
    assert stat == ("sh", "S", 1, 7, 34816, False, 115413)


@pytest.mark.parametrize("comm", [b"a) R 1 (", b") Z 0 0", b"((", b"", b" ", b"x\ny", b"tmux: s"])
def test_a_name_cannot_shift_the_fields(comm: bytes) -> None:
    stat = parse_stat(line(comm))
    assert stat.comm == comm.decode()
    assert (stat.state, stat.ppid, stat.start_ticks) == ("S", 1, 115413)


@given(st.binary(max_size=15).filter(lambda b: b"\0" not in b))
def test_any_name_comes_back(comm: bytes) -> None:
    stat = parse_stat(line(comm))
    assert stat.comm.encode("utf-8", "surrogateescape") == comm
    assert stat.start_ticks == 115413


def test_a_kernel_thread_is_told_by_its_flag() -> None:
    assert parse_stat(line(b"kworker/0:0", b"I", _REST.replace(b"4194560", b"69238880"))).kernel


def test_a_zombie_is_dead_only_when_it_has_no_other_threads() -> None:
    assert parse_stat(line(state=b"Z", rest=_REST.replace(b"20 0 3 0", b"20 0 1 0"))).state == "Z"
    assert parse_stat(line(state=b"Z")).state == "z"


@pytest.mark.parametrize("torn", [b"", b"4711", b"4711 (sh", b"4711 (sh) S 1 7", line()[:40]])
def test_a_torn_line_is_a_failed_look(torn: bytes) -> None:
    with pytest.raises(EnumerationError, match="not understood"):
        parse_stat(torn)


@pytest.mark.parametrize(
    ("cmdline", "argv"),
    [
        (b"", ()),
        (b"sleep\x0010\0", ("sleep", "10")),
        (b"a\0\0b\0", ("a", "", "b")),
        (b"a\0\0", ("a", "")),
        (b"\0", ("",)),
        (b"a b\nc\0", ("a b\nc",)),
        (b"nginx: master process", ("nginx: master process",)),
        (b"x\0\xff\xfe\0", ("x", "\udcff\udcfe")),
    ],
)
def test_arguments_are_split_at_nul_and_nowhere_else(cmdline: bytes, argv: tuple[str]) -> None:
    assert parse_argv(cmdline) == argv


@pytest.mark.parametrize(
    ("environ", "mark", "certain"),
    [
        (b"", None, True),
        (b"A=1\0B=2\0", None, True),
        (b"CORRAL_OWNER=abc\0", "abc", True),
        (b"A=1\0CORRAL_OWNER=abc\0B=2\0", "abc", True),
        (b"CORRAL_OWNER=abc", "abc", True),
        (b"CORRAL_OWNER=a=b c\n\0", "a=b c\n", True),
        (b"CORRAL_OWNER=\xff\0", "\udcff", True),
        # an id that is empty owns nothing
        (b"CORRAL_OWNER=\0", None, True),
        (b"CORRAL_OWNER= \t\0", None, True),
        # only the exact name counts
        (b"XCORRAL_OWNER=abc\0", None, True),
        (b"CORRAL_OWNER_ID=abc\0", None, True),
        (b"A=CORRAL_OWNER=abc\0", None, True),
        (b"corral_owner=abc\0", None, True),
        # the same owner twice is one owner, two are none
        (b"CORRAL_OWNER=a\0X=1\0CORRAL_OWNER=a\0", "a", True),
        (b"CORRAL_OWNER=a\0CORRAL_OWNER=b\0", None, False),
        (b"CORRAL_OWNER=a\0CORRAL_OWNER=a\0CORRAL_OWNER=ab\0", None, False),
        (b"CORRAL_OWNER=\0CORRAL_OWNER=b\0", None, False),
        # a title was written over it
        (b"gunicorn: worker\0\0\0\0\0\0", None, False),
        (b"\0\0\0\0", None, False),
        (b" worker\0RAL_OWNER=abc\0", None, False),
        (b" worker\0A=1\0CORRAL_OWNER=abc\0", "abc", True),
    ],
)
def test_a_mark_counts_only_where_it_is_exact(
    environ: bytes, mark: str | None, certain: bool
) -> None:
    assert parse_marks(environ) == (mark, certain, False)


@pytest.mark.parametrize(
    ("environ", "keep"),
    [
        (b"CORRAL_KEEP=1\0", True),
        (b"A=1\0CORRAL_KEEP=1", True),
        (b"CORRAL_OWNER=a\0CORRAL_KEEP=1\0CORRAL_OWNER=b\0", True),
        (b"CORRAL_KEEP=0\0", False),
        (b"CORRAL_KEEP=11\0", False),
        (b"CORRAL_KEEP=\0", False),
        (b"X_CORRAL_KEEP=1\0", False),
    ],
)
def test_keep_is_exactly_one(environ: bytes, keep: bool) -> None:
    assert parse_marks(environ)[2] is keep


@given(st.text(min_size=1).filter(lambda t: "\0" not in t and t.strip()))
def test_any_owner_comes_back(owner: str) -> None:
    raw = owner.encode("utf-8", "surrogatepass")
    mark, certain, _ = parse_marks(b"A=1\0CORRAL_OWNER=" + raw + b"\0Z=1\0")
    assert certain
    assert mark is not None
    assert mark.encode("utf-8", "surrogateescape") == raw
