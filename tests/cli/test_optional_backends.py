"""What is not on this machine costs nothing: no import, no process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import os, sys
from corral.cli.main import main
main(sys.argv[1:])
names = [n for n in sys.modules if n.startswith("corral.")] + ["subprocess" in sys.modules]
print(*names, file=sys.stderr)
"""
_OPTIONAL = ("clusters", "cluster_", "apple", "firecracker", "microvm")


@pytest.mark.parametrize("command", ["status", "reap"])
def test_a_backend_whose_program_is_missing_costs_no_import_and_no_process(
    git_repo: Path, private_root: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    from support.command import corral

    empty = private_root / "empty"
    empty.mkdir()
    corral(git_repo, "up", "--port", "web")
    monkeypatch.setenv("PATH", str(empty))
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, command],
        cwd=git_repo,
        capture_output=True,
        text=True,
        check=True,
    )
    words = done.stderr.split()
    loaded = [word.rpartition(".")[2] for word in words[:-1]]
    assert [name for name in loaded if name.startswith(_OPTIONAL)] == []
    assert words[-1] == "False", "no program was started"
