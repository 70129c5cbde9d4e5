"""What people read: the word that they meant, and owners by what they know of them."""

from __future__ import annotations

import pytest

from corral.decide.calling import called
from corral.decide.spelling import did_you_mean
from corral.model.owner import Owner


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("stauts", "; did you mean status?"),
        ("clean", "; did you mean cleanup?"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_the_word_that_is_most_alike_is_named_or_none(word: str, said: str) -> None:
    assert did_you_mean(word, ("status", "cleanup", "up")) == said


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        (Owner("own-1", None, None, 0.0, ("a", "b")), "session b (own-1)"),
        (Owner("own-1", "env-1", None, 0.0), "whoever works in /w by hand (own-1)"),
        (Owner("own-1", "env-2", None, 0.0), "owner own-1"),
        (Owner("own-1", None, None, 0.0), "owner own-1"),
    ],
)
def test_an_owner_is_called_by_its_session_or_its_worktree(owner: Owner, said: str) -> None:
    assert called(owner, {"env-1": "/w"}) == said
