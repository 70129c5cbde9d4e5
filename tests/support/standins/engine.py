"""A stand-in for a container engine: its API on a Unix socket over the shared state.

Faults, by "engine": fail, hang, garble, empty, down; by "engine delete": fail, lie, slow.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from support.scripted_socket import ScriptedSocket, answer
from support.standins.state import State, new_id

if TYPE_CHECKING:
    import socket
    from pathlib import Path

IMAGE = "sha256:" + "1" * 64


class StandInEngine(ScriptedSocket):
    """The engine of the state in a directory, behind a socket in it. A context manager."""

    def __init__(self, directory: Path, product: str = "Docker/24.0 (linux)") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory / "s", self._serve_one)
        self.state = State(directory)
        self.product = product
        self.daemon = new_id()

    @property
    def host(self) -> str:
        """What DOCKER_HOST is set to."""
        return f"unix://{self.path}"

    def container(self, name: str, *, image: str = IMAGE, **labels: str) -> str:
        """Add a running container; dots in label names are written as `__`. Its full id."""
        identifier = new_id()
        with self.state.edit() as content:
            content["containers"][identifier] = {
                "name": name,
                "labels": {key.replace("__", "."): value for key, value in labels.items()},
                "state": "running",
                "created": time.time(),
                "image": image,
            }
        return identifier

    def network(self, name: str, **labels: str) -> str:
        """Add a network; its full id."""
        identifier = new_id()
        with self.state.edit() as content:
            content["networks"][identifier] = {
                "name": name,
                "labels": {key.replace("__", "."): value for key, value in labels.items()},
            }
        return identifier

    def label_image(self, image: str, **labels: str) -> None:
        """Let an image hand labels to its containers."""
        with self.state.edit() as content:
            content["images"][image] = {k.replace("__", "."): v for k, v in labels.items()}

    def _serve_one(self, connection: socket.socket, line: str) -> None:
        method, path, _ = line.split()
        fault = self.state.fault("engine")
        if fault == "hang":
            self.wait_until_over()
            return
        if fault == "garble":
            connection.sendall(answer(b"{not json", "200 OK", "Api-Version: 1.43"))
            return
        if fault == "fail":
            connection.sendall(_refusal("500 Internal Server Error", "the store is locked"))
            return
        connection.sendall(self._reply(method, path.partition("?")[0], fault))

    def _reply(self, method: str, path: str, fault: str) -> bytes:
        if path == "/_ping":
            return answer(b"OK", "200 OK", "Api-Version: 1.43", f"Server: {self.product}")
        words = [unquote(word) for word in path.split("/")[2:]]  # behind the version
        content = self.state.read()
        if method == "DELETE":
            return self._delete(words[0], words[1])
        if method == "POST":
            return self._stop(words[1]) if words[-1] == "stop" else answer(b"", "204 No Content")
        if words == ["containers", "json"]:
            shown = {} if fault == "empty" else content["containers"]
            return _json([_container(i, c) for i, c in shown.items()])
        if words == ["networks"]:
            # By its random id every Docker engine is known.
            built_in = {"name": "none", "labels": {}}
            every = {self.daemon: built_in, **content["networks"]}
            return _json([_network(i, n) for i, n in every.items()])
        if words == ["volumes"]:
            return _json({"Volumes": []})
        if words == ["info"]:
            return _json({"ID": "same-everywhere", "Name": "here", "DockerRootDir": "/d"})
        if words[0] == "images":
            return _json({"Config": {"Labels": content["images"].get(words[1], {})}})
        return _json({"HostConfig": {}})

    def _stop(self, identifier: str) -> bytes:
        with self.state.edit() as content:
            if identifier not in content["containers"]:
                return _refusal("404 Not Found", "no such container")
            content["containers"][identifier]["state"] = "exited"
        return answer(b"", "204 No Content")

    def _delete(self, kind: str, identifier: str) -> bytes:
        fault = self.state.fault("engine delete")
        if fault == "fail":
            return _refusal("500 Internal Server Error", "the device is busy")
        if fault == "slow":
            time.sleep(1.0)
        with self.state.edit() as content:
            if identifier not in content[kind]:
                return _refusal("404 Not Found", f"no such thing: {identifier}")
            if fault != "lie":
                del content[kind][identifier]
        return answer(b"", "204 No Content")


def _container(identifier: str, container: dict[str, Any]) -> dict[str, Any]:
    return {
        "Id": identifier,
        "Names": [f"/{container['name']}"],
        "Created": int(container["created"]),
        "State": container["state"],
        "ImageID": container["image"],
        "Labels": container["labels"],
    }


def _network(identifier: str, network: dict[str, Any]) -> dict[str, Any]:
    return {
        "Id": identifier,
        "Name": network["name"],
        "Created": "2026-11-30T10:00:00Z",
        "Labels": network["labels"],
    }


def _json(value: object) -> bytes:
    return answer(json.dumps(value).encode())


def _refusal(status: str, words: str) -> bytes:
    return answer(json.dumps({"message": words}).encode(), status)
