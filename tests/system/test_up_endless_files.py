"""Files of a repository that stand for more than any memory holds: refused by name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Said

# A generous limit: without the checks each of these takes minutes, or all memory.
SECONDS = 60

LEVELS = range(1, 12)
TIMES = 10


def _laughs(first: str, level: str) -> str:
    """Anchors that each stand for ten of the one before; all below an extension of Compose's."""
    lines = [f"  a0: &a0 {first}"]
    for n in LEVELS:
        of = ", ".join([f"*a{n - 1}"] * TIMES)
        lines.append(f"  a{n}: &a{n} " + level.replace("OF", of).replace("ONE", f"*a{n - 1}"))
    return "x-laughs:\n" + "\n".join(lines) + "\nservices: {web: {image: x, environment: *a11}}\n"


_MAPPING = "{" + ", ".join(f"k{n}: ONE" for n in range(TIMES)) + "}"
_CHAIN = "".join(f"  s{n}: {{extends: s{n + 1}}}\n" for n in range(2000))
COMPOSE = {
    "a list of lists": _laughs("[x]", "[OF]"),
    "a mapping of mappings": _laughs("{k: x}", _MAPPING),
    "merged mappings": _laughs("{k: x}", "{<<: [OF]}"),
    "an anchor that holds itself": "services: &a {web: {image: x, environment: {A: *a}}}\n",
    "nested lists": "services: {web: " + "[" * 5000 + "]" * 5000 + "}\n",
    "nested blocks": "services:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 600)),
    "a chain of extends": "services:\n" + _CHAIN + "  s2000: {image: x}\n",
    "a very long file": "services: {web: {image: x}}\n" + "# longer\n" * 40_000,
    "a chain of includes": "include: [part0.yaml, part0.yaml]\nservices: {web: {image: x}}\n",
}
TOML = {
    "nested lists": "[vars]\nA = " + "[" * 5000 + "]" * 5000 + "\n",
    "nested keys": "[vars]\nA" + ".a" * 300_000 + " = 'x'\n",
    "nested keys, less deep": "[vars]\nA" + ".a" * 2000 + " = 'x'\n",
    "many nested keys": "[vars]\n" + "".join(f"A{n}{'.a' * 900} = 'x'\n" for n in range(500)),
    "a nested table": f"[vars{'.a' * 2000}]\n" + "b = 1\n",
}


def refused(where: Path, file: str) -> Said:
    before = sorted(os.listdir(where))
    said = corral(where, "up", check=2, timeout=SECONDS)
    assert str(where / file) in said.err
    assert "internal" not in said.err
    assert sorted(os.listdir(where)) == before
    return said


@pytest.mark.parametrize("text", COMPOSE.values(), ids=COMPOSE)
def test_a_compose_file_without_end_is_named(git_repo: Path, text: str) -> None:
    (git_repo / "compose.yaml").write_text(text)
    for n in range(60):
        following = f"include: [part{n + 1}.yaml, part{n + 1}.yaml]\n" if n < 59 else ""
        (git_repo / f"part{n}.yaml").write_text(following + "services: {}\n")
    said = corral(git_repo, "up", check=2, timeout=SECONDS)
    named = "part" if text.startswith("include") else "compose.yaml"
    assert str(git_repo / named) in said.err
    assert "internal" not in said.err
    assert ask(git_repo, "status")["environment"] is None
    assert not (git_repo / ".env.local").exists()


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
@pytest.mark.parametrize("file", ["corral.toml", "corral.local.toml", "pyproject.toml"])
def test_a_configuration_without_end_is_named(git_repo: Path, file: str, text: str) -> None:
    if file == "pyproject.toml":
        text = text.replace("[vars", "[tool.corral.vars")
    (git_repo / file).write_text(text)
    refused(git_repo, file)


def test_files_to_infer_from_without_end_are_said_and_passed_over(git_repo: Path) -> None:
    (git_repo / "package.json").write_text("[" * 200_000)
    (git_repo / "Procfile").write_text("web: server --port 3417\n" * 100)
    os.mkfifo(git_repo / ".env.example")
    said = corral(git_repo, "up", timeout=SECONDS)
    assert "package.json is no JSON object" in said.err
    assert ".env.example is not read" in said.err


def test_a_pipe_in_the_place_of_a_projects_variables_holds_nobody_up(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text("services: {web: {image: x, ports: ['3416:80']}}\n")
    os.mkfifo(git_repo / ".env")
    corral(git_repo, "up", timeout=SECONDS)


def test_anchors_in_ordinary_use_go_on_working(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(
        "x-common: &common\n  restart: always\n  environment: &variables {A: b}\n"
        "services:\n"
        "  web: {<<: *common, image: x, ports: ['3415:80']}\n"
        "  api: {<<: [*common, {labels: [c]}], image: x, environment: *variables}\n"
        + "".join(f"  s{n}: {{<<: *common, image: x, extends: web}}\n" for n in range(200))
    )
    corral(git_repo, "up", timeout=SECONDS)
    assert "3415" in corral(git_repo, "status").out
