"""What the explanation names is there: files, and for each promise the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = sorted(
    [
        *(_ROOT / "docs" / "explanation").glob("*.md"),
        _ROOT / "SECURITY.md",
        _ROOT / "CONTRIBUTING.md",
    ]
)
_PROMISES = _ROOT / "docs" / "explanation" / "promises.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_FILE = re.compile(r"`((?:tests|bench|\.ci|[a-z]+)/[\w./-]*)`")
_LAYERS = frozenset(path.name for path in (_ROOT / "src" / "corral").iterdir() if path.is_dir())


def _sections() -> list[str]:
    return re.split(r"^## ", _PROMISES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def test_each_of_the_twelve_promises_has_a_section() -> None:
    titles = [section.partition("\n")[0] for section in _sections()]
    assert [title.partition(".")[0] for title in titles] == [str(n) for n in range(1, 13)]


@pytest.mark.parametrize("number", range(1, 13))
def test_a_promise_names_the_files_that_keep_it_and_tests_that_exist(number: int) -> None:
    section = _sections()[number - 1]
    assert "Kept in `" in section
    named = _TEST.findall(section)
    assert len(named) >= 3
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (_ROOT / file).exists()
        or not re.search(rf"^def {test}\(", (_ROOT / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert not missing


@pytest.mark.parametrize("page", _PAGES, ids=lambda p: p.stem)
def test_a_file_that_an_explanation_names_is_there(page: Path) -> None:
    missing = []
    for name in _FILE.findall(page.read_text(encoding="utf-8")):
        top = name.partition("/")[0]
        place = _ROOT / "src" / "corral" / name if top in _LAYERS else _ROOT / name
        if top in _LAYERS | {"tests", "bench", ".ci", "docs"} and not place.exists():
            missing.append(name)
    assert not missing
