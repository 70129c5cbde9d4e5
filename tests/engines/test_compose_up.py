"""`corral up`, then plain `docker compose`: isolated and owned, also from a subdirectory."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from support.command import ask, corral
from support.repositories import git
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.dockerd import Dockerd

BASE = """
name: acme
services:
  web:
    image: box
    container_name: acme-web
    command: httpd -f -p 8080 -h /site
    ports: ["20480:8080"]
    volumes: ["./site:/site:ro", "data:/data"]
volumes:
  data: {name: acme-data}
"""


@pytest.fixture
def project(git_repo: Path) -> Path:
    """A repository with a compose project that publishes a fixed port under fixed names."""
    (git_repo / "compose.yaml").write_text(BASE)
    (git_repo / "site" / "below").mkdir(parents=True)
    (git_repo / "site" / "below" / "keep").write_text("x")
    git(git_repo, "add", ".")
    git(git_repo, "commit", "-qm", "Add the stack")
    return git_repo


def bring_up(tree: Path, docker: Dockerd) -> dict[str, Any]:
    (tree / "site" / "who").write_text(tree.name)
    view: dict[str, Any] = ask(tree, "up", env=docker.env)["environment"]
    return view


def run(program: str, where: Path, docker: Dockerd, *words: str) -> str:
    done = subprocess.run(
        [program, *words], cwd=where, env=docker.env, capture_output=True, text=True, check=False
    )
    assert "rror" not in done.stderr, done.stderr
    return done.stdout


def answer(port: int) -> str:
    def look() -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}/who", timeout=2) as response:
                return str(response.read().decode())
        except OSError:  # not listening yet
            return ""

    return eventually(look, message=f"port {port}")


def test_plain_compose_is_isolated_in_every_worktree_and_goes_with_its_environment(
    project: Path, worktree: Callable[[str], Path], docker: Dockerd, compose: str
) -> None:
    trees = [project, worktree("one"), worktree("two")]
    views = [bring_up(tree, docker) for tree in trees]
    assert views[0]["ports"] == {"web": 20480}
    for tree in trees:
        run(compose, tree / "site" / "below" if tree == trees[2] else tree, docker, "up", "-d")
    for tree, view in zip(trees, views, strict=True):
        assert answer(view["ports"]["web"]) == tree.name
    labels = [docker.inspect(each)["Config"]["Labels"] for each in docker.ids()]
    assert {label["corral.env"] for label in labels} == {view["id"] for view in views}
    assert len({label["com.docker.compose.project"] for label in labels}) == 3
    corral(trees[1], "down", env=docker.env)
    assert answer(views[0]["ports"]["web"]) == "repo"
    assert answer(views[2]["ports"]["web"]) == "two"
    labels = [docker.inspect(each)["Config"]["Labels"] for each in docker.ids()]
    assert {label["corral.env"] for label in labels} == {views[0]["id"], views[2]["id"]}
    assert git(trees[1], "status", "--porcelain") == "?? site/who"


def test_an_override_of_the_users_own_is_merged_below_corrals(
    project: Path, docker: Dockerd, compose: str
) -> None:
    (project / "docker-compose.override.yml").write_text(
        "services:\n  web:\n    ports: ['20481:9090']\n    environment: {MINE: '1'}\n"
    )
    ports = bring_up(project, docker)["ports"]
    assert set(ports) == {"web_8080", "web_9090"}
    merged = run(compose, project, docker, "config")
    assert "MINE" in merged
    assert merged.count("published:") == 2
    assert "container_name" not in merged
    assert "acme" not in merged.replace(str(project), "")
