"""An engine that cannot be had skips its tests, but fails them where it was provisioned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.engines import ENGINES, find_program, require_engine, why_not

_CI = Path(__file__).parents[2] / ".ci" / "run"


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_engine_skips_and_says_why() -> None:
    with pytest.raises(pytest.skip.Exception, match="no tmux: the program tmux is not installed"):
        require_engine("tmux", frozenset())


@pytest.mark.usefixtures("nothing_installed")
def test_a_missing_engine_fails_where_it_is_required() -> None:
    with pytest.raises(pytest.fail.Exception, match="tmux is required here"):
        require_engine("tmux", frozenset({"tmux"}))


def test_what_is_there_is_neither_skipped_nor_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tmux"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("tmux") == str(program)
    assert not why_not("tmux")
    require_engine("tmux", frozenset({"tmux"}))


def test_ci_provisions_only_engines_that_tests_know() -> None:
    names = re.search(r'^ENGINES="([a-z ]*)"$', _CI.read_text(), re.MULTILINE)
    assert names is not None
    assert set(names[1].split()) <= ENGINES.keys()
