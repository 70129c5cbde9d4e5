"""Ports of a project without configuration, from the files that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corral.config import PortWish
from corral.services.up import Request
from support.environments import bring_up, ports_of

if TYPE_CHECKING:
    from pathlib import Path

COMPOSE = """
services:
  web:
    image: x
    ports: ["${WEB_HOST_PORT:-20456}:80"]
  cache.one:
    image: y
    ports: [{target: 6379, published: "20457"}, "53/udp"]
  db:
    image: z
"""


def test_all_files_together_give_each_port_once(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    (git_repo / "Procfile").write_text("web: serve\napi: serve --port 20458\nworker: work\n")
    (git_repo / "package.json").write_text('{"scripts": {"dev": "next dev -p 20458"}}')
    (git_repo / ".env.example").write_text("ADMIN_PORT=20459\nDB_PORT=5432\n")
    done = bring_up(git_repo)
    ports = done.environment["ports"]
    assert {k: v for k, v in ports.items() if not k.startswith("cache")} == {
        "web": 20456,
        "api": 20458,
        "admin": 20459,
    }
    assert ports["cache-one_6379"] == 20457
    assert set(done.inferred) == set(ports)
    (said,) = [words for words in done.words if words.startswith("inferred ports:")]
    assert "web=20456 (compose)" in said
    assert "api=20458 (Procfile)" in said
    assert "admin=20459 (.env.example (ADMIN_PORT))" in said


def test_configuration_stops_the_guessing_but_not_composes_ports(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text("services: {web: {ports: ['20456:80']}}")
    (git_repo / "Procfile").write_text("api: serve --port 20458\n")
    (git_repo / "corral.toml").write_text("[ports]\nfront = 20456\n")
    done = bring_up(git_repo)
    assert done.environment["ports"] == {"front": 20456}
    assert done.inferred == ()


def test_a_port_on_the_command_line_stops_the_guessing(git_repo: Path) -> None:
    (git_repo / "Procfile").write_text("api: serve --port 20458\n")
    assert set(ports_of(git_repo, request=Request(ports=(PortWish("web"),)))) == {"web"}


def test_nothing_to_infer_from_is_said(git_repo: Path) -> None:
    done = bring_up(git_repo)
    assert done.environment["ports"] == {}
    assert any("--port NAME" in words for words in done.words)


def test_files_that_cannot_be_understood_are_said_and_passed_over(git_repo: Path) -> None:
    (git_repo / "package.json").write_text("{")
    (git_repo / "Procfile").mkdir()
    (git_repo / ".env.example").write_bytes(b"\xff\xfe\nWEB_PORT=20456\n")
    done = bring_up(git_repo)
    assert done.environment["ports"] == {"web": 20456}
    assert any(words.startswith("package.json") for words in done.words)
    assert any("Procfile" in words for words in done.words)


def test_a_second_up_infers_the_same(git_repo: Path) -> None:
    (git_repo / "Procfile").write_text("web: serve\n")
    assert ports_of(git_repo) == ports_of(git_repo)
