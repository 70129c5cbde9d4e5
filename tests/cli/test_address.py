"""`corral up --address`: a loopback address for each worktree, and every default port kept."""

from __future__ import annotations

import os
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one loopback address only")

_PORT = 21300 + os.getpid() % 600
_SERVE = (sys.executable, "-m", "http.server", "{port}")
_HERE = ("--bind", "{host}")


@pytest.fixture
def trees(git_repo: Path, worktree: Callable[[str], Path]) -> tuple[Path, Path]:
    """Two worktrees that want the same port, each with a file that tells them apart."""
    found = (git_repo, worktree("other"))
    for tree in found:
        (tree / "corral.toml").write_text(f"[ports]\nweb = {_PORT}\n")
        (tree / "name").write_text(tree.name)
    return found


def _serve(tree: Path, *words: str, check: int | None = 0) -> str:
    run = ("run", "--detach", "--name", "web", "--wait-ready", "20", "--", *_SERVE, *words)
    return corral(tree, *run, check=check).err


def test_worktrees_serve_the_same_port_on_addresses_of_their_own(
    trees: tuple[Path, Path],
) -> None:
    addresses = set()
    for tree in trees:
        environment = ask(tree, "up", "--address")["environment"]
        assert environment["ports"] == {"web": _PORT}
        assert environment["address"].startswith("127.")
        addresses.add(environment["address"])
        _serve(tree, *_HERE)
        assert ask(tree, "url")["url"] == f"http://{environment['address']}:{_PORT}"
    assert len(addresses - {"127.0.0.1"}) == 2
    for tree in trees:
        with urllib.request.urlopen(ask(tree, "url")["url"] + "/name", timeout=10) as answer:
            assert answer.read().decode() == tree.name


def test_the_address_stays_and_goes_back_with_the_environment(trees: tuple[Path, Path]) -> None:
    one, _ = trees
    first = ask(one, "up", "--address")["environment"]["address"]
    assert ask(one, "up")["environment"]["address"] == first
    assert ask(one, "status")["environment"]["address"] == first
    script = 'echo "$HOST $PORT"'
    said = corral(one, "run", "--port", "web", "--", "sh", "-c", script).out
    assert said == f"{first} {_PORT}\n"
    corral(one, "down", "--yes")
    assert ask(one, "up")["environment"]["address"] is None


def test_a_server_on_every_address_is_named_to_the_other_worktree(
    trees: tuple[Path, Path],
) -> None:
    one, other = trees
    ask(one, "up", "--address")
    ask(other, "up", "--address")
    _serve(one)
    words = _serve(other, *_HERE, check=4)
    assert "http.server" in words
    assert "not of this environment" in words
    assert str(_PORT) in words
