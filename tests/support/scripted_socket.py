"""A Unix socket behind which a script answers: for what a real engine does only when it is ill."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class ScriptedSocket:
    """Listens at `path`; each connection's request is handed to `script(connection, request)`.

    `requests` are the request lines in the order in which they came. Use as a context manager.
    """

    def __init__(self, path: Path, script: Callable[[socket.socket, str], None]) -> None:
        self.path = path
        self.requests: list[str] = []
        self._script = script
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(16)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def wait_until_over(self) -> None:
        """What a script calls that shall never answer."""
        self._over.wait(30)

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # shut down
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            data = b""
            while b"\r\n\r\n" not in data:
                chunk = connection.recv(65536)
                if not chunk:
                    return
                data += chunk
            line = data.split(b"\r\n", 1)[0].decode()
            self.requests.append(line)
            try:
                self._script(connection, line)
            except (BrokenPipeError, ConnectionResetError):
                return  # the other side had enough


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A complete answer with a Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
