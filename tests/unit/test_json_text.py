"""Edits of JSON that leave every other byte alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide import json_text
from corral.errors import InvalidValueError

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
LAYOUTS = st.sampled_from([
    {"indent": None},
    {"indent": None, "separators": (",", ":")},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON"),
        ('{"a": 1', "no JSON"),
        ('{"a": 1} x', "no JSON"),
        ('{"a": 1, // why\n"b": 2}', "no JSON"),
        ("\ufeff{}", "no JSON"),
        ("[]", "no JSON object"),
        ("null", "no JSON object"),
        ('{"a": NaN}', "no number"),
        ('{"a": {"b": 1, "b": 2}}', "'b' twice"),
        ('{"a": ' + "[" * 100000 + "]" * 100000 + "}", "too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "no JSON"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        json_text.parse(text)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), LAYOUTS, st.booleans(), VALUES)
def test_a_member_that_is_added_and_removed_leaves_the_bytes_as_they_were(
    known: dict[str, object], layout: dict[str, object], crlf: bool, new: object
) -> None:
    text = json.dumps(known, **layout) + "\n"  # type: ignore[arg-type]
    if crlf:
        text = text.replace("\n", "\r\n")
    start = json_text.root(text)
    added = json_text.add(text, start, new, "a new key")
    assert json.loads(added) == {**known, "a new key": new}
    assert list(json.loads(added)) == [*known, "a new key"]
    assert not crlf or "\n" not in added.replace("\r\n", "")
    if known:
        assert json_text.remove(added, start, len(known)) == text
    else:
        assert json_text.empty(added, start, json_text.inner_blanks(text, start)) == text


@given(st.lists(VALUES, min_size=2, max_size=5), st.integers(0, 4), LAYOUTS)
def test_an_item_is_removed_wherever_it_stands(
    items: list[object], index: int, layout: dict[str, object]
) -> None:
    index %= len(items)
    text = json.dumps({"a": items}, **layout)  # type: ignore[arg-type]
    (part,) = json_text.parts(text, 0)
    assert json.loads(json_text.remove(text, part.value, index)) == {
        "a": items[:index] + items[index + 1 :]
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "k": 1\n}'),
        ("{ }\n", '{\n  "k": 1\n}\n'),
        ("\n {\n}\n", '\n {\n   "k": 1\n }\n'),
        ('{"a": 1}', '{"a": 1, "k": 1}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": 1\n}'),
        ('{ "a": 1,\n    "b": 2 }', '{ "a": 1,\n    "b": 2, "k": 1 }'),
    ],
)
def test_what_is_new_is_laid_out_as_its_neighbours_are(text: str, expected: str) -> None:
    assert json_text.add(text, json_text.root(text), 1, "k") == expected


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{"a" : "x", "b": [1]}'
    part = json_text.parts(text, 0)[0]
    assert part.key == "a"
    assert json_text.value(text, part) == "x"
    assert json_text.replace(text, part, "ü") == '{"a" : "ü", "b": [1]}'
