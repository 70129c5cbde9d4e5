"""A socket in front of a real engine's, which lets the engine look ill in chosen ways."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING

from support.scripted_socket import ScriptedSocket, answer

if TYPE_CHECKING:
    from pathlib import Path

_LINES = "Host: engine\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_CHUNK = 65536


class FaultySocket(ScriptedSocket):
    """Passes every request on to the engine at `real`, unless a fault is set.

    `look`: fail, hang, garble or empty; `removal`: fail, lie or slow. Requests have no bodies.
    """

    def __init__(self, path: Path, real: Path) -> None:
        super().__init__(path, self._pass_on)
        self._real = real
        self.look = ""
        self.removal = ""

    @property
    def host(self) -> str:
        """What leads here."""
        return f"unix://{self.path}"

    def _pass_on(self, connection: socket.socket, line: str) -> None:
        removes = line.startswith("DELETE ")
        if self.look == "hang":
            self.wait_until_over()
            return
        if self.look in {"fail", "garble"} or (removes and self.removal in {"fail", "lie"}):
            connection.sendall(self._ill(removes=removes))
            return
        if removes and self.removal == "slow":
            time.sleep(1.0)
        if self.look == "empty" and "/containers/json" in line:
            connection.sendall(answer(b"[]"))
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as engine:
            engine.connect(str(self._real))
            engine.sendall(f"{line}\r\n{_LINES}".encode())
            while chunk := engine.recv(_CHUNK):
                connection.sendall(chunk)

    def _ill(self, *, removes: bool) -> bytes:
        if self.look == "garble":
            return answer(b"{not json", "200 OK", "Api-Version: 1.41")
        if removes and self.removal == "lie":
            return answer(b"", "204 No Content")
        words = json.dumps({"message": "the store is locked"}).encode()
        return answer(words, "500 Internal Server Error")
