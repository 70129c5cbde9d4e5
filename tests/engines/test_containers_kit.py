"""The kit, passed with real engines; what makes them look ill stands in front of their sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.backend_kit import FailingLooks, FailingRemovals, ReplacedThings
from support.engine_benches import RealEngineBench, RealNodesBench
from support.faulty_socket import FaultySocket

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.dockerd import Dockerd
    from support.podman import Podman


class _RealEngine(ReplacedThings, FailingLooks, FailingRemovals):
    look_faults = ("fail", "hang", "garble", "empty")
    removal_faults = ("fail", "lie", "slow")


class TestDocker(_RealEngine):
    @pytest.fixture
    def bench(self, docker: Dockerd, private_root: Path) -> Iterator[RealEngineBench]:
        with FaultySocket(private_root / "front", docker.socket) as front:
            yield RealEngineBench(docker, front, "docker")


class TestPodman(_RealEngine):
    @pytest.fixture
    def bench(self, podman: Podman, private_root: Path) -> Iterator[RealEngineBench]:
        with FaultySocket(private_root / "front", podman.socket) as front:
            yield RealEngineBench(podman, front, "podman")


class _RealNodes(ReplacedThings):
    tool = ""

    @pytest.fixture
    def bench(
        self, docker: Dockerd, private_root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[RealNodesBench]:
        with FaultySocket(private_root / "front", docker.socket) as front:
            directory = private_root / "tool"
            yield RealNodesBench(self.tool, directory, docker, front, monkeypatch)


class TestKindNodes(_RealNodes, FailingLooks, FailingRemovals):
    tool = "kind"
    look_faults = ("fail", "empty", "engine fail", "engine empty")
    removal_faults = ("fail", "lie")


class TestK3dNodes(_RealNodes):
    tool = "k3d"
