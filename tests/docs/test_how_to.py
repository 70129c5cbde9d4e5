"""The how-to guides do what they show, each in an empty home.

A ```python block whose first line is `# NAME.py` is a file that the page's commands use; any other
one is executed once the page's commands are done.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.console import agrees, normal, run

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to").glob("*.md"))
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.py)\n")


@pytest.fixture
def environ(private_home: Path) -> Mapping[str, str]:
    """Variables as a user has them: the programs of this environment, and no state directory."""
    binaries = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "CORRAL_STATE_DIR": str(private_home / ".local/state/corral"),
    }


@pytest.mark.parametrize("page", _PAGES, ids=lambda p: p.stem)
def test_a_guide_does_what_it_shows(
    page: Path, private_home: Path, environ: Mapping[str, str]
) -> None:
    blocks = _PYTHON.findall(page.read_text(encoding="utf-8"))
    files = {found[1]: block for block in blocks if (found := _FILE.match(block))}
    for name, text in files.items():
        (private_home / name).write_text(text)
    for step, real in run(page, private_home, environ):
        shown, printed = normal(step.expected, private_home), normal(real, private_home)
        assert agrees(shown, printed), f"$ {step.command}\n" + "\n".join(printed)
    for block in blocks:
        if block not in files.values():
            subprocess.run([sys.executable, "-c", block], cwd=private_home, env=environ, check=True)
