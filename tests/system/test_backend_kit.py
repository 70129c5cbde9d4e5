"""The kit, passed by every backend of corral; real container engines pass it in tests/engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.backend_kit import FailingLooks, FailingRemovals, ReplacedThings
from support.benches import (
    AppleBench,
    AppleNetworkBench,
    ClusterBench,
    DirectoryBench,
    EngineBench,
    MicroVMBench,
    ProcessBench,
)
from support.standins.engine import StandInEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.processes import Tracker


@pytest.fixture
def engine(private_root: Path) -> Iterator[StandInEngine]:
    with StandInEngine(private_root / "engine") as running:
        yield running


class TestProcesses(FailingLooks, FailingRemovals):
    look_faults = ("fail",)
    removal_faults = ("slow",)

    @pytest.fixture
    def bench(self, track: Tracker) -> ProcessBench:
        return ProcessBench(track)


class TestDirectories(ReplacedThings, FailingLooks):
    look_faults = ("fail",)

    @pytest.fixture
    def bench(self, state_dir: Path) -> DirectoryBench:
        return DirectoryBench(state_dir)


class TestMicroVMs(ReplacedThings, FailingLooks):
    look_faults = ("fail",)

    @pytest.fixture
    def bench(
        self,
        track: Tracker,
        private_root: Path,
        state_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> MicroVMBench:
        return MicroVMBench(track, private_root, state_dir, monkeypatch)


class TestEngine(ReplacedThings, FailingLooks, FailingRemovals):
    look_faults = ("fail", "hang", "garble", "empty")
    removal_faults = ("fail", "lie", "slow")

    @pytest.fixture
    def bench(self, engine: StandInEngine) -> EngineBench:
        return EngineBench(engine)


class _Clusters(ReplacedThings, FailingLooks, FailingRemovals):
    tool = ""
    look_faults = ("fail", "hang", "garble", "empty", "engine fail", "engine hang", "engine empty")
    removal_faults = ("fail", "lie", "hang", "slow")

    @pytest.fixture
    def bench(
        self, engine: StandInEngine, private_root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ClusterBench:
        return ClusterBench(self.tool, private_root / "engine", engine.host, monkeypatch)


class TestKind(_Clusters):
    tool = "kind"


class TestK3d(_Clusters):
    tool = "k3d"


class TestMinikube(_Clusters):
    tool = "minikube"


class _Apple(ReplacedThings, FailingLooks, FailingRemovals):
    look_faults = ("fail", "hang", "garble", "empty")
    removal_faults = ("fail", "lie", "slow")


class TestAppleContainers(_Apple):
    @pytest.fixture
    def bench(self, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> AppleBench:
        return AppleBench("new", private_root / "apple", monkeypatch)


class TestAppleNetworks(_Apple):
    @pytest.fixture
    def bench(self, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> AppleNetworkBench:
        return AppleNetworkBench("new", private_root / "apple", monkeypatch)


class TestAppleBefore1(FailingLooks, FailingRemovals):
    """The older form says nothing of a creation, so a replaced container cannot be told apart."""

    look_faults = ("fail", "garble")
    removal_faults = ("fail", "lie")

    @pytest.fixture
    def bench(self, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> AppleBench:
        return AppleBench("old", private_root / "apple", monkeypatch)


def test_every_backend_of_corral_passes_the_kit(git_repo: Path) -> None:
    from support.command import ask

    names = {b["name"].partition(":")[0] for b in ask(git_repo, "status")["backends"]}
    passed = {"process", "file", "firecracker", "docker", "podman", "kind", "k3d", "minikube"}
    assert names <= passed | {"apple"}
