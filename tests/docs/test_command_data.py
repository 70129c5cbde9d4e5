"""The data of each command is what its page of the reference says: a contract with programs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.command import ask

_PAGES = Path(__file__).parents[2] / "docs" / "reference" / "commands"
_TABLE = re.compile(
    r"^(?:`([^`\n]*)`[^\n]*:\n\n)?\| field \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE
)

# (page, the word before the table or "") -> how to get such data
_ASKED = {
    ("up", ""): ("up", "--db", "file", "--port", "web"),
    ("env", ""): ("env",),
    ("url", ""): ("url",),
    ("port", "claim"): ("port", "claim", "web"),
    ("port", "release"): ("port", "release", "web"),
    ("port", "list"): ("port", "list"),
    ("db", "create"): ("db", "create"),
    ("db", "url"): ("db", "url"),
    ("db", "list"): ("db", "list"),
    ("run", ""): ("run", "--name", "job", "--port", "web", "--", "true"),
    ("stop", ""): ("stop", "served"),
    ("logs", ""): ("logs", "served"),
    ("lock", ""): ("lock", "v1.0", "--", "true"),
    ("locks", ""): ("locks",),
    ("config", ""): ("config",),
    ("trust", ""): ("trust",),
    ("install", ""): ("install", "claude", "--dry-run"),
    ("uninstall", ""): ("uninstall", "claude", "--dry-run"),
}


def tables(page: str) -> dict[str, set[str]]:
    """The fields of each table of a page, by the word that introduces it."""
    text = (_PAGES / f"{page}.md").read_text(encoding="utf-8")
    return {
        word: set(re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE))
        for word, rows in _TABLE.findall(text)
    }


@pytest.mark.parametrize(("page", "word"), _ASKED, ids=str)
def test_the_data_has_exactly_the_documented_fields(page: str, word: str, git_repo: Path) -> None:
    data: dict[str, Any] = ask(git_repo, "up", "--db", "file", "--port", "web")
    words = _ASKED[page, word]
    if "served" in words:
        ask(git_repo, "run", "--detach", "--name", "served", "--", "sleep", "600")
    if words[0] != "up":
        data = ask(git_repo, *words)
    assert set(data) == tables(page)[word]
    for field, value in data.items():
        if isinstance(value, dict) and field in tables(page):
            assert set(value) == tables(page)[field]


def test_every_table_of_these_pages_is_checked() -> None:
    known = {page for page, _ in _ASKED}
    found = {(page, word) for page in known for word in tables(page)}
    assert found - {("up", "environment")} == set(_ASKED)
