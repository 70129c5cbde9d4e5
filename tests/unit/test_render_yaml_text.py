from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from corral.render.yaml_text import Literal, Tagged, dump
from support import hostile


def _load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(io.StringIO(text))


_keys = st.one_of(hostile.names, st.sampled_from(["yes", "NO", "null", "1", "-", "", "a.b", "é:"]))
_scalars = st.one_of(
    hostile.values.filter(lambda text: "$" not in text), st.integers(), st.booleans(), st.none()
)
_nodes = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(_keys, _nodes, min_size=1, max_size=3))
def test_what_is_dumped_is_loaded_back(document: dict[str, Any]) -> None:
    assert _load(dump(document)) == document


def test_a_dollar_is_doubled_except_where_compose_shall_expand() -> None:
    assert dump({"a": "$x", "b": Literal("${x}")}) == 'a: "$$x"\nb: "${x}"\n'


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Tagged("!reset", None), "k: !reset null\n"),
        (Tagged("!override", []), "k: !override []\n"),
        (Tagged("!override", ["a"]), 'k: !override\n  - "a"\n'),
        (Tagged("!override", {"a": 1}), "k: !override\n  a: 1\n"),
        ([{"a": 1, "b": {"c": 2}}], "k:\n  - a: 1\n    b:\n      c: 2\n"),
        ([["x"], {}], 'k:\n  -\n    - "x"\n  - {}\n'),
    ],
)
def test_tags_and_nesting_are_written_in_block_style(node: Any, text: str) -> None:
    assert dump({"k": node}) == text
