"""One connection to an engine: through its Unix socket, or through a program in between."""

from __future__ import annotations

import errno
import time

from corral.backends.engine.states import (
    EngineAbsentError,
    EngineDeniedError,
    EngineDownError,
    EngineError,
    EngineHungError,
)
from corral.backends.engine.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Mapping

    from corral.backends._command import Stream
    from corral.backends.engine.endpoints import Endpoint
    from corral.backends.engine.wire import Response


class Line:
    """One connection to the engine, by its socket or through a program."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str], deadline: float) -> None:
        self._stream: Stream | None = None
        if endpoint.problem:
            raise EngineError(endpoint.problem, backend=endpoint.name)
        if endpoint.path:
            self._socket = _connect(endpoint, deadline)
        else:
            from corral.backends.engine.dial_stdio import dial

            self._stream = dial(endpoint, environ)
            self._socket = self._stream.socket
        self._endpoint = endpoint
        self._wire = Wire(self._socket, endpoint.url, deadline)

    def send(self, data: bytes) -> None:
        """Send a request."""
        try:
            self._wire.send(data)
        except EngineError as error:
            raise self._explained(error) from error

    def receive(self) -> Response:
        """Wait for its answer."""
        try:
            return self._wire.receive()
        except EngineError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Close it, and end the program in between."""
        if self._stream is not None:
            self._stream.close()
        else:
            self._socket.close()

    def _explained(self, error: EngineError) -> EngineError:
        """The same error with the backend's name, and with what the program in between says."""
        complaint = self._stream.complaint() if self._stream is not None else ""
        message = f"{error.message}: {complaint}" if complaint else error.message
        return type(error)(message, backend=self._endpoint.name)


def _connect(endpoint: Endpoint, deadline: float) -> socket:
    # What `socket` wraps, and all that is needed; `socket` itself costs 3 ms to import.
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        while True:
            try:
                connection.settimeout(max(deadline - time.monotonic(), 0.001))
                connection.connect(endpoint.path)
            except BlockingIOError:  # the queue of a listener that accepts nothing is full
                if time.monotonic() >= deadline:
                    raise TimeoutError from None
                time.sleep(0.01)
            else:
                return connection
    except OSError as error:
        connection.close()
        raise _reason(endpoint, error) from error


def _reason(endpoint: Endpoint, error: OSError) -> EngineError:
    where = endpoint.path
    if isinstance(error, TimeoutError):
        return EngineHungError(f"{where} takes no connection", backend=endpoint.name)
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
        return EngineAbsentError(f"no socket at {where}", backend=endpoint.name)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return EngineDeniedError(
            f"this user may not open {where}",
            backend=endpoint.name,
            remedy="join the group that owns the socket, or use a rootless engine",
        )
    if error.errno == errno.ECONNREFUSED:
        return EngineDownError(f"nothing listens at {where}", backend=endpoint.name)
    return EngineError(f"{where} cannot be opened: {error}", backend=endpoint.name)
