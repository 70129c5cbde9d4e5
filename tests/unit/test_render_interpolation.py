from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.render.interpolation import dotenv_pairs, expand, split_outside

_KNOWN = {"SET": "value", "EMPTY": "", "NAME": "SET"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("", ""),
        ("plain", "plain"),
        ("$SET", "value"),
        ("${SET}", "value"),
        ("a${SET}b$SET.c", "avaluebvalue.c"),
        ("$UNSET${UNSET}", ""),
        ("$$SET $${SET}", "$SET ${SET}"),
        ("${SET:-x}${EMPTY:-x}${UNSET:-x}", "valuexx"),
        ("${SET-x}${EMPTY-x}${UNSET-x}", "valuex"),
        ("${SET:+x}${EMPTY:+x}${UNSET:+x}", "x"),
        ("${SET+x}${EMPTY+x}${UNSET+x}", "xx"),
        ("${SET:?no}${EMPTY:?no}${UNSET?no}", "value"),
        ("${UNSET:-${SET}}", "value"),
        ("${UNSET:-${ALSO:-deep}}:80", "deep:80"),
        ("${UNSET:-a:b}", "a:b"),
        ("$", "$"),
        ("$ x", "$ x"),
        ("$1", "$1"),
        ("${", "${"),
        ("${SET", "${SET"),
        ("${}", "${}"),
        ("${1}", "${1}"),
        ("${SET*}", "value"),
    ],
)
def test_variables_are_expanded_as_compose_expands_them(text: str, expanded: str) -> None:
    assert expand(text, _KNOWN) == expanded


@given(st.text(alphabet="${}:-+?A ", max_size=30))
def test_no_text_breaks_the_expansion(text: str) -> None:
    expand(text, {"A": "1"})
    assert "".join(split_outside(text, ":")) == text.replace(":", "") or "{" in text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a:b", ["a", "b"]),
        ("${A:-1}:${B:-${C:-2}}:3", ["${A:-1}", "${B:-${C:-2}}", "3"]),
        ("$A:3", ["$A", "3"]),
        ("${A:3", ["${A:3"]),
        ("", [""]),
    ],
)
def test_a_separator_within_a_variable_does_not_separate(text: str, parts: list[str]) -> None:
    assert split_outside(text, ":") == parts


def test_a_dotenv_file_is_understood_as_far_as_ports_need_it() -> None:
    text = (
        '# comment\nA=1\nexport B = \'two words\'\n\nC="say \\"hi\\""\nD=4 # comment\r\n'
        "E=\nF=a#b\nnonsense\n=x\nG='x # y'\n"
    )
    assert dict(dotenv_pairs(text)) == {
        "A": "1",
        "B": "two words",
        "C": 'say "hi"',
        "D": "4",
        "E": "",
        "F": "a#b",
        "G": "x # y",
    }
