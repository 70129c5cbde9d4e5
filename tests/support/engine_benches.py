"""Benches over real engines: their things are real, their faults are put in front of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corral.model.resource import Kind
from support.backend_kit import Bench, Worker
from support.benches import ClusterBench

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from corral.contracts import Backend
    from support.dockerd import Dockerd
    from support.faulty_socket import FaultySocket
    from support.podman import Podman


class RealEngineBench(Bench):
    """Containers of a real engine behind a faulty socket. `family`: docker or podman."""

    kind = Kind.CONTAINER

    def __init__(self, engine: Dockerd | Podman, front: FaultySocket, family: str) -> None:
        self._engine = engine
        self._front = front
        self._family = family
        self._number = 0

    def backend(self, worker: Worker) -> Backend:
        from corral.backends.containers import container_backends

        variable = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}[self._family]
        environ = {**worker.environ, variable: self._front.host}
        found = container_backends(environ, environ["HOME"])
        return next(b for b in found if b.name == self._family)

    def _add(self, *labels: str, name: str = "") -> str:
        options = [word for label in labels for word in ("--label", label)]
        if name:
            options += ["--name", name]
        return self._engine.container(*options)

    def make(self, worker: Worker) -> str:
        self._number += 1
        return self._add(f"corral.owner={worker.owner}", name=f"mine-{self._number}")

    def make_unmarked(self) -> str:
        return self._add("app=web")

    def make_look_alikes(self, worker: Worker) -> list[str]:
        labels = [
            "corral.owner=",
            "corral.session= ",
            f"corral.owner={worker.owner}x",
            f"corral.session={worker.session[:-1]}",
            f"xcorral.owner={worker.owner}",
            f"note=a,corral.owner={worker.owner}",
        ]
        return [self._add(label) for label in labels]

    def exists(self, thing: str) -> bool:
        return thing in self._engine.ids()

    def replace(self, thing: str, worker: Worker) -> str:
        self.take_away(thing)
        return self._add(f"corral.owner={worker.owner}", name=f"mine-{self._number}")

    def take_away(self, thing: str) -> None:
        run: Any = getattr(self._engine, self._family)
        at_once = ("--time", "0") if self._family == "podman" else ()
        run("rm", "--force", "--volumes", *at_once, thing)

    def break_look(self, fault: str) -> None:
        self._front.look = fault

    def break_removal(self, fault: str) -> None:
        self._front.removal = fault


class RealNodesBench(ClusterBench):
    """Clusters of a stand-in tool whose nodes are labelled containers of a real Docker."""

    def __init__(
        self,
        tool: str,
        directory: Path,
        engine: Dockerd,
        front: FaultySocket,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        super().__init__(tool, directory, front.host, monkeypatch)
        self._engine = engine
        self._front = front
        with self.state.edit() as content:
            content["host"] = engine.host

    def make_look_alikes(self, worker: Worker) -> list[str]:
        """Two of them: a real node takes its time."""
        return [self.by_hand(f"corral-{worker.session}x"), self.by_hand("corral-")]

    def nodes(self, name: str) -> set[str]:
        """The ids of a cluster's node containers."""
        from corral.decide.cluster_tools import TOOLS

        wanted = f"label={TOOLS[self.tool].label}={name}"
        listed = self._engine.docker("ps", "--all", "--quiet", "--no-trunc", "--filter", wanted)
        return set(listed.split())

    def exists(self, thing: str) -> bool:
        return super().exists(thing) or bool(self.nodes(thing))

    def break_look(self, fault: str) -> None:
        where, _, how = fault.rpartition(" ")
        self._front.look = how if where == "engine" else ""
        self.state.set_fault(f"{self.tool} list", how if where != "engine" else "")
