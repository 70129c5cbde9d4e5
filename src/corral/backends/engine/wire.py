"""HTTP/1.1 over one connected socket, under one deadline.

The standard library's client would cost 23 ms to import and limits each read, so that an engine
which sends a byte now and then could hold a caller for ever. What the engines send is small:
a status line, headers, and a body by length, by chunks, or up to the end of the connection.
"""

from __future__ import annotations

import time

from corral.backends.engine.states import EngineDownError, EngineError, EngineHungError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

BODY_LIMIT = 64 * 1024 * 1024  # bytes; 10,000 containers are about 10 MB
_LINE_LIMIT = 64 * 1024
_CHUNK = 65536
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:")
_NO_BODY = frozenset({204, 304})


class Response(NamedTuple):
    """One answer: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes


def request(method: str, path: str, body: bytes | None = None) -> bytes:
    """The bytes of one request; the connection is closed after its answer.

    `path` holds no space or control character: callers quote what they put into it.
    """
    lines = [f"{method} {path} HTTP/1.1", "Host: engine", "Connection: close"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    elif method == "POST":
        lines.append("Content-Length: 0")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


def quoted(text: str) -> str:
    """The text as one segment of a path (RFC 3986)."""
    return "".join(
        chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}" for byte in text.encode()
    )


class Wire:
    """One connected socket. `deadline` is on the monotonic clock and covers all of it."""

    def __init__(self, connection: socket, name: str, deadline: float) -> None:
        self._socket = connection
        self._name = name
        self._deadline = deadline
        self._buffer = bytearray()
        self._ended = False

    def send(self, data: bytes) -> None:
        """Send all of it, or raise EngineHungError or EngineDownError."""
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except TimeoutError as error:
            raise self._hung() from error
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._down(f"closed the connection ({error.strerror})") from error

    def receive(self) -> Response:
        """Read one answer. Raises EngineHungError, EngineDownError or EngineError."""
        status = self._status()
        while status // 100 == 1:  # "100 Continue" and the like come before the answer
            self._headers()
            status = self._status()
        headers = self._headers()
        return Response(status, headers, self._body(status, headers))

    def _status(self) -> int:
        line = self._line()
        version, _, rest = line.partition(" ")
        status = rest.lstrip().partition(" ")[0]
        if not version.startswith("HTTP/1.") or not status.isdigit():
            raise self._garbled(f"{line[:80]!r} is no status line")
        return int(status)

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        total = 0
        while line := self._line():
            total += len(line)
            if total > _LINE_LIMIT:
                raise self._garbled("the headers do not end")
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return headers

    def _body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in _NO_BODY:
            return b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        length = headers.get("content-length")
        if length is None:
            return self._rest()
        if not length.isdigit():
            raise self._garbled(f"Content-Length is {length!r}")
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            size = self._line().partition(";")[0].strip()
            if not size or not set(size) <= _HEXADECIMAL:
                raise self._garbled(f"{size[:20]!r} is no chunk size")
            count = int(size, 16)
            if count == 0:
                self._headers()  # trailers
                return bytes(body)
            self._limit(len(body) + count)
            body += self._exactly(count)
            if self._line():
                raise self._garbled("a chunk is longer than it said")

    def _exactly(self, count: int) -> bytes:
        self._limit(count)
        while len(self._buffer) < count:
            if not self._fill():
                raise self._down("closed the connection in the middle of an answer")
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _rest(self) -> bytes:
        while self._fill():
            self._limit(len(self._buffer))
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def _line(self) -> str:
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            if start > _LINE_LIMIT:
                raise self._garbled("a line does not end")
            if not self._fill():
                raise self._down("closed the connection without an answer")
        line = self._buffer[:end].rstrip(b"\r").decode("latin-1")
        del self._buffer[: end + 1]
        return line

    def _fill(self) -> bool:
        """Read what is there into the buffer, waiting for it; False at the end."""
        try:
            self._socket.settimeout(self._left())
            data = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise self._hung() from error
        except ConnectionResetError as error:
            raise self._down("reset the connection") from error
        self._buffer += data
        return bool(data)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._hung()
        return left

    def _limit(self, count: int) -> None:
        if count > BODY_LIMIT:
            raise self._garbled(f"the answer is longer than {BODY_LIMIT} bytes")

    def _hung(self) -> EngineHungError:
        return EngineHungError(f"{self._name} took the connection and does not answer")

    def _down(self, what: str) -> EngineDownError:
        return EngineDownError(f"{self._name} {what}")

    def _garbled(self, what: str) -> EngineError:
        return EngineError(f"{self._name} gave an answer that is no HTTP: {what}")
