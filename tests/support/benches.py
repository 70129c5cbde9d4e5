"""A bench for each backend of corral, for the kit that tests them all alike."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.backends.files import FileBackend
from corral.backends.processes import ProcessBackend
from corral.model.resource import Kind
from corral.services.databases import own_directory
from corral.services.environments import require
from support.backend_kit import Bench, Worker, down_job
from support.command import alive, ask, corral
from support.microvms import stand_in
from support.standins.programs import on_path
from support.waiting import eventually

if TYPE_CHECKING:
    import pytest

    from corral.contracts import Backend, View
    from corral.model.resource import Observation, Sighting
    from corral.services.teardown import Teardown
    from support.processes import Tracker
    from support.standins.engine import StandInEngine
    from support.standins.state import State

_SLEEP = (sys.executable, "-S", "-c", "import signal; signal.pause()")
_STUBBORN = (
    *(sys.executable, "-S", "-c"),
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()",
)


def _without_descriptors() -> Any:
    """For a moment this process may open no more files, so that no look at /proc succeeds."""

    @contextlib.contextmanager
    def starved() -> Any:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        highest = max(int(fd) for fd in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(3, highest), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return starved()


class _Starved(ProcessBackend):
    """The process backend on a machine that is out of descriptors."""

    def observe(self, view: View) -> Observation:
        with _without_descriptors():
            return super().observe(view)


class ProcessBench(Bench):
    """Processes started by `corral run`; look-alikes carry other marks in their environment."""

    kind = Kind.PROCESS

    def __init__(self, track: Tracker) -> None:
        self._track = track
        self._fault = ""
        self._stubborn = False

    def backend(self, worker: Worker) -> Backend:
        del worker
        return _Starved() if self._fault else ProcessBackend()

    def make(self, worker: Worker) -> int:
        argv = _STUBBORN if self._stubborn else _SLEEP
        words = ("run", "--detach", "--", *argv)
        env = {"CORRAL_SESSION": worker.session}
        return self._track.pid(int(ask(worker.directory, *words, env=env)["pid"]))

    def make_unmarked(self) -> int:
        return self._track.spawn(_SLEEP).pid

    def make_look_alikes(self, worker: Worker) -> list[int]:
        marks = ["", " ", worker.owner[:-1], f"{worker.owner}x", f"{worker.owner} ", worker.session]
        return [self._spawn({"CORRAL_OWNER": mark}) for mark in marks]

    def _spawn(self, variables: dict[str, str]) -> int:
        return self._track.spawn(_SLEEP, env={**os.environ, **variables}).pid

    def exists(self, thing: int) -> bool:
        return alive(thing)

    def is_it(self, sighting: Sighting, thing: int) -> bool:
        return sighting.id == str(thing)

    def take_away(self, thing: int) -> None:
        os.kill(thing, signal.SIGKILL)
        eventually(lambda: not alive(thing))

    def break_look(self, fault: str) -> None:
        self._fault = fault

    def break_removal(self, fault: str) -> None:
        self._stubborn = fault == "slow"


class DirectoryBench(Bench):
    """An environment's own directory; only the environment's end takes it."""

    kind = Kind.DIRECTORY

    def __init__(self, state_dir: Path) -> None:
        self._root = state_dir / "environments"
        self._state_dir = state_dir
        self._hidden = state_dir / "aside"

    def backend(self, worker: Worker) -> Backend:
        del worker
        return FileBackend()

    def make(self, worker: Worker) -> str:
        path = own_directory(worker.context, require(worker.context))
        Path(path, "kubeconfig").write_text("x")
        return path

    def make_unmarked(self) -> str:
        return self._directory("precious")

    def make_look_alikes(self, worker: Worker) -> list[str]:
        names = [f"{worker.environment}x", worker.environment[:-1], f"{worker.environment} "]
        made = [self._directory(name) for name in names]
        Path(made[0], ".corral-nonce").write_text("")
        elsewhere = self._state_dir.parent / "elsewhere"
        elsewhere.mkdir()
        (self._root / "env-link").symlink_to(elsewhere)
        return [*made, str(elsewhere)]

    def _directory(self, name: str) -> str:
        path = self._root / name
        path.mkdir(parents=True)
        path.parent.chmod(0o700)
        (path / "file").write_text("x")
        return str(path)

    def exists(self, thing: str) -> bool:
        return os.path.lexists(thing)

    def replace(self, thing: str, worker: Worker) -> str:
        del worker
        shutil.rmtree(thing)
        os.mkdir(thing)
        Path(thing, ".corral-nonce").write_text("another\n")
        return thing

    def take_away(self, thing: str) -> None:
        shutil.rmtree(thing)

    def break_look(self, fault: str) -> None:
        if fault:
            self._root.rename(self._hidden)
            self._root.write_text("no directory")
        elif self._hidden.exists():
            self._root.unlink()
            self._hidden.rename(self._root)

    def job(self, worker: Worker) -> Teardown:
        return down_job(worker)

    def abandon(self, worker: Worker) -> None:
        worker.end()
        shutil.rmtree(worker.directory)


class MicroVMBench(Bench):
    """Stand-in processes with the argv of Firecracker, in run directories from Python."""

    kind = Kind.MICROVM

    def __init__(
        self, track: Tracker, private_root: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._track = track
        self._state_dir = state_dir
        self._programs = private_root / "programs"
        self._hidden = state_dir / "aside"
        stand_in(self._programs)
        monkeypatch.setenv("PATH", f"{self._programs}{os.pathsep}{os.environ['PATH']}")

    def backend(self, worker: Worker) -> Backend:
        from corral.backends.firecracker import FirecrackerBackend

        del worker
        return FirecrackerBackend()

    def make(self, worker: Worker) -> tuple[int, str]:
        from corral.services.microvm_starts import make_directory
        from corral.services.owners import ensure_acting

        environment = require(worker.context)
        acting = ensure_acting(worker.context, environment)
        path = make_directory(worker.context, environment, acting).path
        return self._start(os.path.join(path, "vm.json")), path

    def _start(self, config: str) -> int:
        argv = ("firecracker", "--no-api", "--config-file", config)
        process = self._track.spawn(argv)
        cmdline = Path(f"/proc/{process.pid}/cmdline")
        eventually(lambda: b"\0-S\0" in cmdline.read_bytes(), message="it is what it looks like")
        return process.pid

    def make_unmarked(self) -> tuple[int, str]:
        return self._start("/nowhere/vm.json"), ""

    def make_look_alikes(self, worker: Worker) -> list[tuple[int, str]]:
        del worker  # a path cannot look like one worker's more than like another's
        run = self._state_dir / "run"
        paths = [
            f"{run}/vm.json",
            f"{run}-other/vm-1/vm.json",
            f"x {run}/vm-1/vm.json",
            f"{run}/../run2/vm-1/vm.json",
            "run/vm-1/vm.json",
        ]
        found = [(self._start(path), "") for path in paths]
        directory = run / "vm-made-by-hand"
        directory.mkdir(parents=True)
        run.chmod(0o700)
        found.append((self._start(f"{directory}/vm.json"), ""))
        return found

    def exists(self, thing: tuple[int, str]) -> bool:
        return alive(thing[0])

    def is_it(self, sighting: Sighting, thing: tuple[int, str]) -> bool:
        return dict(sighting.identity).get("pid") == thing[0]

    def replace(self, thing: tuple[int, str], worker: Worker) -> tuple[int, str]:
        del worker
        self.take_away(thing)
        return self._start(os.path.join(thing[1], "vm.json")), thing[1]

    def take_away(self, thing: tuple[int, str]) -> None:
        os.kill(thing[0], signal.SIGKILL)
        eventually(lambda: not alive(thing[0]))

    def break_look(self, fault: str) -> None:
        root = self._state_dir / "run"
        if fault:
            root.rename(self._hidden)
            root.write_text("no directory")
        elif self._hidden.exists():
            root.unlink()
            self._hidden.rename(root)


class EngineBench(Bench):
    """Containers of a stand-in engine."""

    kind = Kind.CONTAINER

    def __init__(self, engine: StandInEngine) -> None:
        self._engine = engine
        self._number = 0

    def backend(self, worker: Worker) -> Backend:
        from corral.backends.containers import container_backends

        environ = {**worker.environ, "DOCKER_HOST": self._engine.host}
        return container_backends(environ, environ["HOME"])[0]

    def make(self, worker: Worker) -> str:
        self._number += 1
        return self._engine.container(f"mine-{self._number}", corral__owner=worker.owner)

    def make_unmarked(self) -> str:
        return self._engine.container("my-prod", app="web")

    def make_look_alikes(self, worker: Worker) -> list[str]:
        self._engine.label_image("sha256:marked", corral__owner=worker.owner)
        add = self._engine.container
        return [
            add("empty-owner", corral__owner=""),
            add("empty-session", corral__session=""),
            add("blank", corral__session=" "),
            add("longer", corral__owner=f"{worker.owner}x"),
            add("shorter", corral__owner=worker.owner[:-1]),
            add("session-prefix", corral__session=worker.session[:-1]),
            add("other-key", xcorral__owner=worker.owner),
            add("in-a-value", note=f"a,corral.owner={worker.owner}"),
            add(f"corral-{worker.session}"),
            add("from-image", image="sha256:marked", corral__owner=worker.owner),
        ]

    def exists(self, thing: str) -> bool:
        return thing in self._engine.state.read()["containers"]

    def replace(self, thing: str, worker: Worker) -> str:
        with self._engine.state.edit() as content:
            name = content["containers"].pop(thing)["name"]
        return self._engine.container(name, corral__owner=worker.owner)

    def take_away(self, thing: str) -> None:
        with self._engine.state.edit() as content:
            del content["containers"][thing]

    def break_look(self, fault: str) -> None:
        self._engine.state.set_fault("engine", fault)

    def break_removal(self, fault: str) -> None:
        self._engine.state.set_fault("engine delete", fault)


class ClusterBench(Bench):
    """Clusters of a stand-in tool; its nodes are containers of an engine."""

    kind = Kind.CLUSTER

    def __init__(
        self, tool: str, directory: Path, host: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.tool = tool
        self.state: State = on_path(monkeypatch, directory, tool)
        self._number = 0
        monkeypatch.setenv("DOCKER_HOST", host)

    def backend(self, worker: Worker) -> Backend:
        from corral.backends.clusters import cluster_backends

        environ = {**worker.environ, "PATH": os.environ["PATH"]}
        environ["DOCKER_HOST"] = os.environ["DOCKER_HOST"]
        return cluster_backends(self.tool, environ, environ["HOME"])[0]

    def make(self, worker: Worker) -> str:
        self._number += 1
        name = f"mine-{self._number}"
        env = {"CORRAL_SESSION": worker.session}
        corral(worker.directory, "run", "--", *self._create(name), env=env)
        return name

    def _create(self, name: str) -> list[str]:
        return {
            "kind": ["kind", "create", "cluster", "--name", name],
            "k3d": ["k3d", "cluster", "create", name],
            "minikube": ["minikube", "start", "-p", name],
        }[self.tool]

    def by_hand(self, name: str) -> str:
        """A cluster that the user makes without corral."""
        from corral.backends import _command

        done = _command.run(self._create(name), timeout=30)
        assert done.returncode == 0, done.stderr
        return name

    def make_unmarked(self) -> str:
        return self.by_hand("my-prod")

    def make_look_alikes(self, worker: Worker) -> list[str]:
        names = [
            f"corral-{worker.session}x",
            f"corral-{worker.session[:-1]}",
            f"my-corral-{worker.session}",
            f"Corral-{worker.session}",
            f"corral{worker.session}",
            worker.session,
            "corral",
            "corral-",
        ]
        return [self.by_hand(name) for name in names]

    def exists(self, thing: str) -> bool:
        return thing in self.state.read()["clusters"].get(self.tool, {})

    def replace(self, thing: str, worker: Worker) -> str:
        del worker
        self.take_away(thing)
        return self.by_hand(thing)

    def take_away(self, thing: str) -> None:
        from corral.backends import _command
        from corral.decide.cluster_tools import TOOLS

        _command.run(TOOLS[self.tool].delete_command(thing, ""), timeout=30)

    def break_look(self, fault: str) -> None:
        where, _, how = fault.rpartition(" ")
        place = "engine" if where == "engine" else f"{self.tool} list"
        for each in ("engine", f"{self.tool} list"):
            self.state.set_fault(each, how if each == place else "")

    def break_removal(self, fault: str) -> None:
        self.state.set_fault(f"{self.tool} delete", fault)


class AppleBench(Bench):
    """Containers of a stand-in for Apple's `container`, in one of its two forms."""

    kind = Kind.CONTAINER
    what = "containers"

    def __init__(self, form: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state: State = on_path(monkeypatch, directory, "container")
        self._number = 0
        with self.state.edit() as content:
            content["form"] = form

    def backend(self, worker: Worker) -> Backend:
        from corral.backends.apple import AppleBackend

        return AppleBackend({**worker.environ, "PATH": os.environ["PATH"]})

    def add(self, identifier: str, *, mounts: bool = False, **labels: str) -> str:
        """A running one with these labels; `__` in a label's name is a dot."""
        self._number += 1
        with self.state.edit() as content:
            content[self.what][identifier] = {
                "labels": {key.replace("__", "."): value for key, value in labels.items()},
                "state": "running",
                "date": f"2026-11-30T10:00:{self._number % 60:02}Z",
                "mounts": [{"destination": "/data"}] if mounts else [],
            }
        return identifier

    def make(self, worker: Worker) -> str:
        return self.add(f"mine-{self._number}", corral__owner=worker.owner)

    def make_unmarked(self) -> str:
        return self.add("my-prod", app="web")

    def make_look_alikes(self, worker: Worker) -> list[str]:
        return [
            self.add("empty-owner", corral__owner=""),
            self.add("empty-session", corral__session=" "),
            self.add("longer", corral__owner=f"{worker.owner}x"),
            self.add("session-prefix", corral__session=worker.session[:-1]),
            self.add("other-key", xcorral__owner=worker.owner),
            self.add("in-a-value", note=f"corral.owner={worker.owner}"),
            self.add(f"corral-{worker.session}"),
        ]

    def exists(self, thing: str) -> bool:
        return thing in self.state.read()[self.what]

    def replace(self, thing: str, worker: Worker) -> str:
        return self.add(thing, corral__owner=worker.owner)

    def take_away(self, thing: str) -> None:
        with self.state.edit() as content:
            del content[self.what][thing]

    def break_look(self, fault: str) -> None:
        self.state.set_fault("container list", fault)

    def break_removal(self, fault: str) -> None:
        self.state.set_fault("container delete", fault)


class AppleNetworkBench(AppleBench):
    """Networks of the same."""

    kind = Kind.NETWORK
    what = "networks"
