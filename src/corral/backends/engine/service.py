"""The engine of a podman program that no socket leads to: its service, while it is asked.

Podman needs no daemon, and on many machines none runs. The program can serve the API itself, from
the very storage that its options name; it does so on a private socket until the look is over.
"""

from __future__ import annotations

import json
import os
import time

from corral.backends import _command
from corral.backends.engine.states import (
    EngineAbsentError,
    EngineDownError,
    EngineError,
    EngineHungError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.backends.engine.endpoints import Endpoint

_IDLE = "30"  # seconds after which a service that was forgotten ends by itself
_PAUSE = 0.005
_PROGRAM = "podman"


class Service:
    """One running service. Close it, or it stays until it was idle for a while."""

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str], deadline: float) -> None:
        import tempfile

        argv = _argv(endpoint)
        self._directory = tempfile.mkdtemp(prefix="corral-")
        self._socket = os.path.join(self._directory, "s")
        words = ("system", "service", "--time", _IDLE, f"unix://{self._socket}")
        try:
            self._stream = _command.connect([*argv, *words], env=environ)
        except _command.ProgramMissingError as error:
            os.rmdir(self._directory)
            message, remedy = error.message, error.remedy
            raise EngineAbsentError(message, backend=endpoint.name, remedy=remedy) from error
        try:
            self._wait(endpoint, deadline)
        except EngineError:
            self.close()
            raise
        self.endpoint = endpoint._replace(url=f"unix://{self._socket}")

    def _wait(self, endpoint: Endpoint, deadline: float) -> None:
        while not _listens(self._socket):
            if self._stream.process.poll() is not None:
                what = self._stream.complaint() or "it ended at once"
                raise EngineDownError(f"the service of podman: {what}", backend=endpoint.name)
            if time.monotonic() >= deadline:
                what = "the service of podman did not start in time"
                raise EngineHungError(what, backend=endpoint.name)
            time.sleep(_PAUSE)

    def close(self) -> None:
        """End the service and remove its socket."""
        self._stream.close()
        if os.path.lexists(self._socket):
            os.unlink(self._socket)
        os.rmdir(self._directory)


def _listens(path: str) -> bool:
    """Whether somebody accepts there: the file is there a moment before its server listens."""
    import socket

    with socket.socket(socket.AF_UNIX) as caller:
        try:
            caller.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def _argv(endpoint: Endpoint) -> list[str]:
    """The program and its options, as they stand in the endpoint's place."""
    try:
        words = json.loads(endpoint.program)
    except ValueError:
        words = None
    sound = isinstance(words, list) and words and all(isinstance(word, str) for word in words)
    if not sound or os.path.basename(words[0]) != _PROGRAM:
        what = f"{endpoint.url} names no podman program"
        raise EngineError(what, backend=endpoint.name)
    return list(words)
