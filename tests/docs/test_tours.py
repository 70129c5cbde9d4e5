"""The README's tour and the tutorial do what they show, in an empty home."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.console import agrees, normal, run

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/index.md"])
def test_a_tour_prints_what_its_page_shows(private_home: Path, page: str) -> None:
    binaries = Path(sys.executable).parent
    environ = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "CORRAL_STATE_DIR": str(private_home / ".local/state/corral"),
    }
    for step, real in run(_ROOT / page, private_home, environ):
        shown, printed = normal(step.expected, private_home), normal(real, private_home)
        assert agrees(shown, printed), f"$ {step.command}\n" + "\n".join(printed)
