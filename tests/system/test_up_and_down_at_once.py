"""`up` and `down` of one environment at once: afterwards all of it is there, or nothing."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from support.command import COMMAND, ask, corral

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

ROUNDS = 6
_UP = ("up", "--port", "web", "--db", "file")
_DOWN = ("down", "--yes")


def _at_once(where: Path, track: Tracker, *commands: tuple[str, ...]) -> list[int]:
    running = [
        track.spawn(
            [*COMMAND, *words], cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        for words in commands
    ]
    said = [(each.communicate(timeout=120)[1] or b"").decode() for each in running]
    for each, err in zip(running, said, strict=True):
        assert "internal" not in err, err
        assert each.returncode in {0, 2, 4}, err
    return [each.returncode for each in running]


def _whole_or_nothing(where: Path, state_dir: Path) -> bool:
    """Whether there is an environment now; it is complete, and without one nothing is left."""
    environment = ask(where, "status")["environment"]
    file = where / ".env.local"
    directories = os.listdir(state_dir / "environments")
    ports = ask(where, "port", "list", "--all")["ports"]
    if environment is None:
        assert not file.exists()
        assert directories == []
        assert ports == []
        assert "corral" not in (where / ".git/info/exclude").read_text()
        return False
    assert directories == [environment["id"]]
    assert [port["port"] for port in ports] == [environment["ports"]["web"]]
    text = file.read_text()
    assert environment["id"] in text
    assert f"WEB_PORT={environment['ports']['web']}" in text
    assert os.path.exists(environment["database"]["name"])
    assert ".env.local" in (where / ".git/info/exclude").read_text()
    return True


def test_up_beside_down_leaves_all_of_an_environment_or_nothing(
    git_repo: Path, state_dir: Path, track: Tracker
) -> None:
    for round_ in range(ROUNDS):
        if round_ % 2:
            corral(git_repo, *_UP)
        commands = (_UP, _DOWN) if round_ % 3 else (_DOWN, _UP)
        _at_once(git_repo, track, *commands)
        _whole_or_nothing(git_repo, state_dir)
    _at_once(git_repo, track, _UP, _DOWN, _UP, _DOWN)
    if _whole_or_nothing(git_repo, state_dir):
        corral(git_repo, *_DOWN)
    assert not _whole_or_nothing(git_repo, state_dir)
    corral(git_repo, *_UP)
    assert _whole_or_nothing(git_repo, state_dir)
