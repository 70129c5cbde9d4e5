"""The block in git's exclude file, as text."""

from __future__ import annotations

import pytest

from corral.errors import InvalidValueError
from corral.services.exclude import pattern, with_block

BEGIN = b"# >>> corral: files that it generates >>>\n"
END = b"# <<< corral <<<\n"


def test_a_block_is_added_at_the_end_and_taken_out_again() -> None:
    text = b"# git's own\n*.log\n"
    written = with_block(text, ["/.env", "/.env.local"])
    assert written == text + BEGIN + b"/.env\n/.env.local\n" + END
    assert with_block(written, ["/.env", "/.env.local"]) == written
    assert with_block(written, []) == text


def test_lines_below_the_block_stay() -> None:
    written = with_block(b"a\n" + BEGIN + b"/x\n" + END + b"b\n", ["/y"])
    assert written == b"a\nb\n" + BEGIN + b"/y\n" + END


def test_a_last_line_without_its_end_is_not_joined_to_the_block() -> None:
    assert with_block(b"*.log", ["/x"]) == b"*.log\n" + BEGIN + b"/x\n" + END


@pytest.mark.parametrize("text", [BEGIN + b"/x\n", b"/x\n" + END])
def test_marks_that_do_not_pair_up_are_refused(text: bytes) -> None:
    with pytest.raises(InvalidValueError):
        with_block(text, ["/y"])


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        (".env.local", "/.env.local"),
        ("config/a b.yml", "/config/a\\ b.yml"),
        ("we*ird[1]?", "/we\\*ird\\[1\\]\\?"),
        ("#x", "/\\#x"),
        ("!x", "/\\!x"),
    ],
)
def test_a_pattern_matches_exactly_one_path(relative: str, expected: str) -> None:
    assert pattern(relative) == expected
