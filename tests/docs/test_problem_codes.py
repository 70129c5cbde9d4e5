"""Every code that a command gives to a problem is on the reference page of errors."""

from __future__ import annotations

import re
from pathlib import Path

import corral

_CODE = re.compile(r"Problem\(\s*\"([a-z-]+)\"")


def test_every_code_of_a_problem_is_documented() -> None:
    source = Path(corral.__file__).parent
    found = {c for path in source.rglob("*.py") for c in _CODE.findall(path.read_text())}
    assert {"left", "remaining", "missing-directory"} <= found
    page = (Path(__file__).parents[2] / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert not {code for code in found if f"| `{code}` |" not in page}
