"""The examples of the format pages print what the pages say."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from corral.render import FORMATS

_DIRECTORY = Path(__file__).parents[2] / "docs/reference/formats"
_PAGES = sorted(page for page in _DIRECTORY.glob("*.md") if page.stem != "index")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_format_has_a_page() -> None:
    assert {page.stem for page in _PAGES} == set(FORMATS)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.stem)
def test_every_example_prints_what_stands_below_it(page: Path) -> None:
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))
    names: dict[str, Any] = {}
    examples = 0
    for (language, code), (_, expected) in itertools.pairwise(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert printed.getvalue() == expected
        examples += 1
    assert examples
