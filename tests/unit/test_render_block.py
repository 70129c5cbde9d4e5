from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import InvalidValueError, RefusedError
from corral.render.block import find_blocks, place_block, remove_block

ID = "7f3a2b1c"
LINES = b"PORT=22001\nNAME='x y'\n"

_files = st.one_of(
    st.sampled_from(
        [
            b"",
            b"A=1",
            b"A=1\n",
            b"A=1\r\nB=2\r\n",
            b"A=1\r\nB=2",
            b"\n\n",
            b"\r",
            b"A=1\r",
            b"# comment",
            b"\xef\xbb\xbfA=1\n",
            b"\xff\xfe latin",
            b"# >>> conda initialize >>>\nx\n# <<< conda initialize <<<\n",
        ]
    ),
    st.binary(max_size=60).filter(lambda content: b"\0" not in content),
)
_bodies = st.one_of(
    st.just(LINES), st.just(b""), st.just(b"A=1"), st.binary(max_size=40).filter(bool)
).filter(lambda body: b"# " not in body and b"\0" not in body)


def _with_block(user: bytes = b"A=1\nB=2\n", lines: bytes = LINES) -> bytes:
    return place_block(user, ID, lines)


@given(_files, _bodies)
def test_removing_gives_back_the_user_s_file_byte_for_byte(user: bytes, body: bytes) -> None:
    placed = place_block(user, ID, body)
    assert placed.startswith(user)
    assert remove_block(placed) == user


@given(_files, _bodies, _bodies)
def test_placing_again_changes_only_the_block(user: bytes, first: bytes, second: bytes) -> None:
    placed = place_block(place_block(user, ID, first), ID, second)
    assert placed == place_block(user, ID, second)
    assert remove_block(placed) == user


@given(_files, _bodies)
def test_placing_the_same_lines_again_changes_nothing(user: bytes, body: bytes) -> None:
    once = place_block(user, ID, body)
    assert place_block(once, ID, body) == once


def test_a_file_that_corral_made_is_gone_when_its_block_is_removed() -> None:
    made = place_block(None, ID, LINES)
    assert remove_block(made) is None
    assert remove_block(place_block(made, "other", b"X=1\n")) is None


def test_a_file_that_corral_made_stays_once_the_user_wrote_into_it() -> None:
    assert remove_block(place_block(None, ID, LINES) + b"MINE=1\n") == b"MINE=1\n"
    assert remove_block(b"MINE=1\n" + place_block(None, ID, LINES)) == b"MINE=1\n"


def test_an_empty_file_of_the_user_s_stays() -> None:
    assert remove_block(place_block(b"", ID, LINES)) == b""


def test_a_file_without_a_block_is_left_as_it_is() -> None:
    assert remove_block(b"A=1\r\nB=2") == b"A=1\r\nB=2"
    assert find_blocks(b"A=1\n") == ()


def test_lines_that_follow_the_block_stay_on_lines_of_their_own() -> None:
    placed = place_block(b"A=1", ID, LINES) + b"B=2\n"
    assert remove_block(placed) == b"A=1\nB=2\n"
    assert place_block(placed, ID, b"P=1\n").endswith(b"B=2\n")


def test_a_block_of_another_environment_is_replaced_where_it_stands() -> None:
    copied = place_block(b"A=1\n", "another", LINES) + b"B=2\n"
    placed = place_block(copied, ID, LINES)
    assert [block.id for block in find_blocks(placed)] == [ID]
    assert b"another" not in placed
    assert placed.startswith(b"A=1\n# >>> corral")
    assert placed.endswith(b"B=2\n")


def test_a_second_block_is_taken_out() -> None:
    doubled = _with_block() + _with_block(b"C=3\n")
    placed = place_block(doubled, ID, b"P=1\n")
    assert len(find_blocks(placed)) == 1
    assert remove_block(placed) == b"A=1\nB=2\nC=3\n"
    assert remove_block(doubled) == b"A=1\nB=2\nC=3\n"


def test_a_block_knows_what_it_holds() -> None:
    (block,) = find_blocks(_with_block())
    assert block.lines == LINES
    assert block.id == ID
    assert (block.joined, block.made, block.carriage) == (False, False, False)


@pytest.mark.parametrize("user", [b"A=1\n", b"A=1"])
def test_a_block_survives_an_editor_that_changes_all_line_ends(user: bytes) -> None:
    converted = place_block(user, ID, LINES).replace(b"\n", b"\r\n")
    assert remove_block(converted) == user.replace(b"\n", b"\r\n")
    assert remove_block(place_block(converted, ID, LINES)) in {
        user.replace(b"\n", b"\r\n"),
        user + b"\r" * (not user.endswith(b"\n")),  # the block's own marks end in LF again
    }


def test_a_block_that_the_user_edited_is_replaced_between_its_marks() -> None:
    edited = _with_block().replace(b"22001", b"9")
    assert place_block(edited, ID, LINES) == _with_block()


# a block whose closing mark was lost


def _torn(after: bytes = b"") -> bytes:
    placed = _with_block()
    return placed[: placed.index(b"# <<<")] + after


@pytest.mark.parametrize("after", [b"", b"B=2\n", b"\nPORT=1\n", b"no newline"])
def test_a_torn_block_is_replaced_up_to_what_its_digest_proves(after: bytes) -> None:
    new = b"PORT=5\n"
    placed = place_block(_torn(after), ID, new)
    assert placed == place_block(b"A=1\nB=2\n", ID, new) + after
    assert remove_block(_torn(after)) == b"A=1\nB=2\n" + after


@pytest.mark.parametrize("length", range(1, len(f"# <<< corral {ID} <<<")))
def test_a_block_that_was_cut_off_within_its_closing_mark_is_whole(length: int) -> None:
    placed = _with_block()
    start = placed.index(b"# <<<")
    assert remove_block(placed[: start + length]) == b"A=1\nB=2\n"


@pytest.mark.parametrize("length", range(len(LINES)))
def test_a_block_that_was_cut_off_within_its_lines_is_recognised_by_writing_them_again(
    length: int,
) -> None:
    placed = _with_block()
    cut_off = placed[: placed.index(LINES) + length]
    assert place_block(cut_off, ID, LINES) == placed


def test_a_torn_block_with_foreign_lines_is_refused() -> None:
    torn = _torn(b"B=2\n").replace(b"22001", b"9")
    with pytest.raises(RefusedError, match="line 3 is an opening mark") as caught:
        place_block(torn, ID, b"PORT=1\n")
    assert "delete line 3" in caught.value.remedy
    with pytest.raises(RefusedError):
        remove_block(torn)


def test_a_closing_mark_alone_is_refused() -> None:
    with pytest.raises(RefusedError, match="closing mark"):
        place_block(f"A=1\n# <<< corral {ID} <<<\n".encode(), ID, LINES)


def test_marks_of_two_environments_do_not_make_a_block() -> None:
    mixed = _with_block().replace(f"# <<< corral {ID}".encode(), b"# <<< corral other")
    with pytest.raises(RefusedError):
        place_block(mixed, ID, LINES)


def test_a_second_closing_mark_is_refused() -> None:
    placed = _with_block() + f"B=1\n# <<< corral {ID} <<<\n".encode()
    with pytest.raises(RefusedError):
        find_blocks(placed)


@given(st.binary(max_size=20), st.integers(0, 200), st.integers(0, 200))
def test_whatever_is_damaged_no_line_of_the_user_s_is_lost(
    junk: bytes, start: int, length: int
) -> None:
    placed = _with_block(b"MINE=1\n") + b"ALSO=2\n"
    begin, end = placed.index(b"# >>>"), placed.index(b"ALSO")
    at = min(begin + start, end)
    damaged = placed[:at] + junk + placed[min(at + length, end) :]
    with suppress(RefusedError, InvalidValueError):
        result = place_block(damaged, ID, LINES)
        assert result.startswith(b"MINE=1\n")
        assert b"ALSO=2\n" in result


# what cannot be told apart from the marks


@pytest.mark.parametrize("block_id", ["", "a b", "a\n", "../x", "é", "-x", "a>b"])
def test_an_id_that_does_not_fit_a_mark_is_refused(block_id: str) -> None:
    with pytest.raises(InvalidValueError):
        place_block(b"", block_id, LINES)


@pytest.mark.parametrize(
    "line", [f"# <<< corral {ID} <<<", "# <<< corral other <<<", "# >>> corral x"]
)
def test_a_value_cannot_close_the_block(line: str) -> None:
    with pytest.raises(InvalidValueError, match="mark"):
        place_block(b"", ID, f"A='x\n{line}\nPATH=evil'\n".encode())


@pytest.mark.parametrize("content", ["A=1\n".encode("utf-16"), b"\0"])
def test_a_file_that_is_no_text_is_refused(content: bytes) -> None:
    with pytest.raises(RefusedError):
        place_block(content, ID, LINES)
