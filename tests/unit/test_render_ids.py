from __future__ import annotations

import re

import pytest
from hypothesis import given

from corral.errors import CorralError, InvalidValueError
from corral.render.ids import container_name, schema_name
from support import hostile

_SAFE = re.compile(r"[a-z][a-z0-9_]{0,62}")


def test_the_documented_names() -> None:
    assert schema_name("fb563322") == "worktree_fb563322"
    assert schema_name("feature/my-branch") == "worktree_feature_my_branch"
    assert container_name("fb563322", namespace="harness") == "harness_fb563322"
    assert container_name("fb563322", "db", namespace="harness") == "harness_fb563322_db"


def test_names_begin_with_the_namespace() -> None:
    assert container_name("fb563322") == "corral_fb563322"
    assert container_name("x", namespace="my-team") == "my_team_x"
    assert schema_name("fb563322", namespace="foundry") == "worktree_fb563322"


@given(hostile.ids)
def test_every_id_gives_safe_names(worktree_id: str) -> None:
    for name in (
        schema_name(worktree_id),
        container_name(worktree_id),
        container_name(worktree_id, "db"),
        container_name("x", worktree_id),
        container_name(worktree_id, worktree_id, namespace="a" * 20),
    ):
        assert _SAFE.fullmatch(name), name
        assert not name.endswith("_")


def test_digits_come_only_where_an_id_was_cut_or_nothing_of_it_is_left() -> None:
    assert schema_name("a" * 54) == "worktree_" + "a" * 54
    assert re.fullmatch(r"worktree_a{45}_[0-9a-f]{8}", schema_name("a" * 55))
    assert re.fullmatch(r"worktree_[0-9a-f]{8}", schema_name("日本"))
    assert re.fullmatch(r"corral_[0-9a-f]{8}_db", container_name("---", "db"))
    assert re.fullmatch(r"corral_x_[0-9a-f]{8}", container_name("x", "日本"))


def test_what_was_cut_or_emptied_stays_distinct() -> None:
    ids = ["a" * 300, "a" * 299 + "b", "日本", "日", "---", "--", "..."]
    assert len({schema_name(text) for text in ids}) == len(ids)
    assert len({container_name(text, "db") for text in ids}) == len(ids)
    assert len({container_name("x", text) for text in ids}) == len(ids)


def test_a_suffix_survives_the_cut() -> None:
    assert container_name("a" * 100, "db").endswith("_db")
    assert container_name("a" * 100, "db") != container_name("a" * 100, "cache")
    assert container_name("a", "b" * 100) != container_name("a", "b" * 101)


@pytest.mark.parametrize("worktree_id", ["", " ", "\n\t", None, 7, b"x"])
def test_an_empty_id_names_nothing(worktree_id: str) -> None:
    for function in (schema_name, container_name):
        with pytest.raises(InvalidValueError) as caught:
            function(worktree_id)
        assert isinstance(caught.value, CorralError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("namespace", ["", "-a", "_", "A", "a b", "a/b", "a" * 21, "é", None, 3])
def test_a_namespace_that_cannot_begin_a_name_is_refused(namespace: str) -> None:
    for function in (schema_name, container_name):
        with pytest.raises(InvalidValueError, match="namespace"):
            function("x", namespace=namespace)
