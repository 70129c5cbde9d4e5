"""Several worktrees of one Compose project, up at once on the real Docker Engine."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING
from urllib.request import urlopen

from corral.render.compose_base import published_ports, read_base
from corral.render.compose_override import override_for
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from support.dockerd import Dockerd

# three services, with every fixed name and port that would keep a second copy from starting
_BASE = """
name: acme
services:
  web:
    image: box
    container_name: acme-web
    command: httpd -f -p 8080 -h /site
    ports: ["8080:8080"]
    volumes: ["./site:/site:ro"]
    networks: [back]
    depends_on: [api, cache]
  api:
    image: box
    container_name: acme-api
    command: sh -c 'mkdir -p /www && echo "$$SECRET" > /www/who && httpd -f -p 9000 -h /www'
    environment: {SECRET: base}
    ports:
      - target: 9000
        published: "9000"
        mode: host
    networks:
      back: {ipv4_address: 10.77.0.10}
  cache:
    image: box
    container_name: acme-cache
    command: sh -c 'echo one >> /data/runs && httpd -f -p 7000 -h /data'
    ports: ["127.0.0.1:7000:7000"]
    volumes: ["data:/data"]
    networks: [back]
volumes:
  data: {name: acme-data}
networks:
  back:
    name: acme-back
    ipam: {config: [{subnet: 10.77.0.0/24}]}
"""


class Worktree:
    """One checkout of the project with its own override, and what is published for it."""

    def __init__(self, directory: Path, name: str, docker: Dockerd, program: str) -> None:
        self._docker, self._program, self._directory = docker, program, directory
        self.name = name
        (directory / "site").mkdir(parents=True)
        (directory / "site/who").write_text(f"{name}\n")
        (directory / "compose.yaml").write_text(_BASE)
        base = read_base([str(directory / "compose.yaml")], {})
        free = _free_ports(3)
        result = override_for(
            base,
            project=f"acme-{name}",
            environment_id=f"env-{name}",
            ports={port.key: free.pop() for port in published_ports(base)},
            variables={"SECRET": f"{name}'s $secret"},
        )
        (directory / "override.yaml").write_text(result.text)
        self.ports = {each.service: each.host_port for each in result.published}

    def compose(self, *arguments: str) -> str:
        # the wheel's own starter hides the exit status, so what counts is what is there afterwards
        done = subprocess.run(
            [self._program, "-f", "compose.yaml", "-f", "override.yaml", *arguments],
            cwd=self._directory,
            env=self._docker.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "rror" not in done.stderr, done.stderr
        return done.stdout

    def ask(self, service: str, path: str) -> str:
        url = f"http://127.0.0.1:{self.ports[service]}/{path}"

        def answer() -> str:
            try:
                with urlopen(url, timeout=2) as response:
                    return str(response.read().decode())
            except OSError:  # not listening yet
                return ""

        return eventually(answer, message=url)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return numbers


def test_two_worktrees_are_up_at_once_and_each_reaches_its_own_services(
    private_root: Path, docker: Dockerd, compose: str
) -> None:
    one, two = (Worktree(private_root / n, n, docker, compose) for n in ("one", "two"))
    one.compose("up", "-d")
    two.compose("up", "-d")
    for worktree in (one, two):
        assert worktree.ask("web", "who") == f"{worktree.name}\n"
        assert worktree.ask("api", "who") == f"{worktree.name}'s $secret\n"
        assert worktree.ask("cache", "runs") == "one\n"
        inside = worktree.compose("exec", "-T", "web", "wget", "-qO-", "http://api:9000/who")
        assert inside == f"{worktree.name}'s $secret\n"
    assert not set(one.ports.values()) & set(two.ports.values())
    _assert_down_takes_only_its_own(one, two, docker)


def _assert_down_takes_only_its_own(one: Worktree, two: Worktree, docker: Dockerd) -> None:
    one.compose("down", "-v", "-t", "0")
    assert two.ask("cache", "runs") == "one\n"
    labels = {
        docker.inspect(container)["Config"]["Labels"]["corral.env"] for container in docker.ids()
    }
    assert labels == {"env-two"}
    two.compose("down", "-v", "-t", "0")
    assert not docker.ids()
    assert not docker.ids("volume")


def test_another_up_in_the_same_worktree_recreates_nothing(
    private_root: Path, docker: Dockerd, compose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worktree = Worktree(private_root / "one", "one", docker, compose)
    worktree.compose("up", "-d")
    before = docker.ids()
    monkeypatch.setitem(os.environ, "CORRAL_OWNER", "another-worker")
    worktree.compose("up", "-d")
    assert docker.ids() == before
    worktree.compose("down", "-v", "-t", "0")
