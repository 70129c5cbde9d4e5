"""Filling `${...}` in values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.references import filled_in
from corral.errors import ConfigurationError

KNOWN = {"ports.web": "3000", "env.id": "${ports.web}"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain $HOME $ {x} %", "plain $HOME $ {x} %"),
        ("http://localhost:${ports.web}/x", "http://localhost:3000/x"),
        ("${ports.web}${ports.web}", "30003000"),
        ("$${ports.web}", "${ports.web}"),
        ("$$${ports.web}", "$${ports.web}"),
        ("a $${ b ${ports.web}", "a ${ b 3000"),
        ("${env.id}", "${ports.web}"),
        ("}", "}"),
    ],
)
def test_known_names_are_filled_in_once(text: str, expected: str) -> None:
    assert filled_in("vars.X", text, KNOWN) == expected


@pytest.mark.parametrize("text", ["${ports.wbe}", "${}", "${HOME}", "x${ports.web", "${"])
def test_an_unknown_or_open_reference_is_an_error_naming_the_variable(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"vars\.X"):
        filled_in("vars.X", text, KNOWN)


@given(st.text())
def test_any_text_can_be_written_literally(text: str) -> None:
    assert filled_in("vars.X", text.replace("${", "$${"), {}) == text
