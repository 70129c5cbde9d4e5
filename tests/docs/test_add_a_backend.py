"""The worked example of "Add a backend" passes the kit that it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-backend.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _example() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": __name__}
    for block in _PYTHON.findall(_PAGE.read_text(encoding="utf-8")):
        exec(compile(block, str(_PAGE), "exec"), names)
    return names


TestJobs = _example()["TestJobs"]
