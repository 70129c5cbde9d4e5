"""Puts stand-in programs on PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.standins.state import State

if TYPE_CHECKING:
    import pytest

_TESTS = Path(__file__).parents[2]


def on_path(monkeypatch: pytest.MonkeyPatch, directory: Path, *names: str) -> State:
    """Stand-ins for these programs first on PATH, with their state in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    programs = directory / "bin"
    programs.mkdir(exist_ok=True)
    for name in names:
        install(programs, directory, name)
    first = f"{programs}{os.pathsep}"
    if not os.environ["PATH"].startswith(first):
        monkeypatch.setenv("PATH", first + os.environ["PATH"])
    return State(directory)


def install(programs: Path, directory: Path, name: str) -> Path:
    """One stand-in as a file of this name."""
    module = "apple_container" if name == "container" else "cluster_tool"
    words = [sys.executable, "-S", "-m", f"support.standins.{module}"]
    words += [name] if module == "cluster_tool" else []
    path = programs / name
    line = " ".join(f"'{word}'" for word in [*words, str(directory)])
    path.write_text(f"#!/bin/sh\nPYTHONPATH='{_TESTS}' exec {line} \"$@\"\n")
    path.chmod(0o755)
    return path
