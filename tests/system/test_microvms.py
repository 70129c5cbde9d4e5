"""microVMs with stand-in processes of the same argv; the real program is in tests/engines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.microvms import Machine, MicroVMs, stand_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(private_root: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    programs = private_root / "programs"
    stand_in(programs)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    config = programs / "vm.json"
    config.write_text('{"boot-source": {}}')
    return Machine(config)


class TestStandIn(MicroVMs):
    """The suite, with stand-ins."""


def test_without_microvms_nothing_is_made_for_them(git_repo: Path, state_dir: Path) -> None:
    from support.command import ask

    (backend,) = [b for b in ask(git_repo, "status")["backends"] if b["name"] == "firecracker"]
    assert backend["state"] == "absent"
    assert not (state_dir / "run").exists()
