"""Why an engine could not be asked: each reason is a failed look of its own type."""

from __future__ import annotations

from corral.errors import EnumerationError


class EngineError(EnumerationError):
    """An engine could not be asked, or its answer could not be understood."""

    state = "failed"


class EngineAbsentError(EngineError):
    """There is no socket, or the program that leads to the engine is not installed."""

    state = "absent"


class EngineDeniedError(EngineError):
    """The socket is there and this user may not open it."""

    state = "denied"


class EngineDownError(EngineError):
    """The socket is there and nobody answers behind it."""

    state = "down"


class EngineHungError(EngineError):
    """The engine took the connection and did not answer in time."""

    state = "hung"


class EngineRefusalError(EngineError):
    """The engine answered, and the answer is an error.

    `status` is the HTTP status, `answer` the engine's own words.
    """

    state = "refused"

    def __init__(self, message: str, *, status: int, answer: str, backend: str = "") -> None:
        super().__init__(message, backend=backend)
        self.status = status
        self.answer = answer
