from __future__ import annotations

import pytest
from hypothesis import given

from corral.errors import CorralError, InvalidValueError
from corral.render.variables import check_name, check_value, checked
from support import hostile


@given(hostile.names)
def test_every_variable_name_is_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "1A", "A-B", "A B", "A=B", "A\n", " A", "É", "A.B", "日本", "A\0", None, 7, b"A"]
)
def test_what_is_no_name_is_refused_and_shown(name: object) -> None:
    with pytest.raises(InvalidValueError, match="no name for a variable") as caught:
        check_name(name)
    assert isinstance(caught.value, CorralError)
    assert isinstance(caught.value, ValueError)
    assert repr(name) in caught.value.message


def test_the_mark_of_a_worker_never_reaches_a_file() -> None:
    with pytest.raises(InvalidValueError, match="mark") as caught:
        check_name("CORRAL_OWNER")
    assert caught.value.resource == "CORRAL_OWNER"


@pytest.mark.parametrize("value", ["a\0b", "é\0", "\udc80", 5, True, None, b"x", ["x"]])
def test_a_value_that_no_process_environment_holds_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_value("SECRET", value)
    assert caught.value.resource == "SECRET"


def test_a_refusal_does_not_repeat_the_value() -> None:
    with pytest.raises(InvalidValueError) as caught:
        check_value("SECRET", "hunter2\0")
    assert "hunter2" not in str(caught.value)


def test_variables_keep_their_order() -> None:
    assert checked({"B": "1", "A": "2"}) == (("B", "1"), ("A", "2"))
    assert checked([("B", "1"), ("A", "2")]) == (("B", "1"), ("A", "2"))


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="twice"):
        checked([("A", "1"), ("A", "2")])
