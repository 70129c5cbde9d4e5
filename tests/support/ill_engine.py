"""An engine that holds containers and misbehaves as told: for what a sound one never shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support.scripted_socket import ScriptedSocket, answer

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path


class IllEngine(ScriptedSocket):
    """`states`: the containers by id; `owners`: whose label each carries.

    `on_delete(id)` makes the answer to a removal.
    `on_list()` is called before each listing and may change the states.
    """

    def __init__(
        self,
        path: Path,
        on_delete: Callable[[str], bytes],
        on_list: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(path, self._answer)
        self.states: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self._on_delete = on_delete
        self._on_list = on_list

    def _answer(self, connection: socket.socket, line: str) -> None:
        method, path, _ = line.split()
        connection.sendall(self._reply(method, path.partition("?")[0]))

    def _reply(self, method: str, path: str) -> bytes:
        if path == "/_ping":
            return answer(b"OK", "200 OK", "Api-Version: 1.43", "Server: Docker/24.0 (linux)")
        words = path.split("/")[2:]  # behind the version
        if method == "DELETE":
            return self._on_delete(words[1])
        if words == ["containers", "json"]:
            self._on_list()
            return _json([self._row(i, state) for i, state in self.states.items()])
        if words == ["networks"]:
            return _json([])
        if words == ["volumes"]:
            return _json({"Volumes": []})
        if words == ["info"]:
            return _json({"ID": "ILL", "DockerRootDir": "/d"})
        return _json({"Config": {}})

    def _row(self, identifier: str, state: str) -> dict[str, object]:
        return {
            "Id": identifier,
            "Names": [f"/{identifier}"],
            "Created": 1,
            "State": state,
            "ImageID": "sha256:1",
            "Labels": {"corral.owner": self.owners.get(identifier, "own-1")},
        }


def _json(value: object) -> bytes:
    return answer(json.dumps(value).encode())


def done() -> bytes:
    """The answer to a removal that was done."""
    return answer(b"", "204 No Content")


def refusal(status: str, words: str) -> bytes:
    """An answer that is an error."""
    return answer(json.dumps({"message": words}).encode(), status)
