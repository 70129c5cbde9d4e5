"""Asking one engine: connect, agree on the API's version, ask several things at once."""

from __future__ import annotations

from corral.backends.engine import wire
from corral.backends.engine.line import Line
from corral.backends.engine.states import EngineError, EngineRefusalError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self

    from corral.backends.engine.endpoints import Endpoint
    from corral.backends.engine.service import Service

NEWEST_API = (1, 51)
OLDEST_API = (1, 24)
_OK = 200


class About(NamedTuple):
    """What an engine says of itself. `api`: the version that both sides speak."""

    product: str
    version: str
    api: tuple[int, int]

    @property
    def podman(self) -> bool:
        """Whether it is Podman's service, which differs in a few answers."""
        return self.product == "Podman"


class Engine:
    """One engine behind one endpoint; a context manager, since a program may have to serve it.

    Deadlines are on the monotonic clock; each call raises a kind of EngineError when the engine
    cannot be asked, does not answer in time, or answers with an error.
    """

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self._environ = environ
        self._about: About | None = None
        self._service: Service | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._service is not None:
            self._service.close()
            self._service = None

    def about(self, deadline: float) -> About:
        """Product and versions, asked for once."""
        if self._about is None:
            answer = self._exchange([("GET", "/_ping", None)], deadline)[0]
            if answer.status != _OK:
                raise self._refusal(answer, "/_ping")
            self._about = self._understood(answer.headers)
        return self._about

    def read(self, paths: Sequence[str], deadline: float) -> list[Any]:
        """The decoded answers to several GETs, which are asked at the same time.

        Raises EngineRefusalError for the first that is an error, EngineError for no JSON.
        """
        answers = self.calls([("GET", path, None) for path in paths], deadline)
        return [self._decoded(a, path) for a, path in zip(answers, paths, strict=True)]

    def calls(
        self, calls: Sequence[tuple[str, str, bytes | None]], deadline: float
    ) -> list[wire.Response]:
        """Raw answers to (method, path, body), which are asked at the same time.

        An answer that is an error is returned like any other.
        """
        major, minor = self.about(deadline).api
        prefix = f"/v{major}.{minor}"
        return self._exchange([(m, f"{prefix}{path}", body) for m, path, body in calls], deadline)

    def call(self, method: str, path: str, deadline: float) -> wire.Response:
        """The raw answer to one call; safe to be called from several threads."""
        return self.calls([(method, path, None)], deadline)[0]

    def words(self, answer: wire.Response) -> str:
        """What the engine says of an error."""
        import json

        try:
            message = json.loads(answer.body)["message"]
        except (ValueError, KeyError, TypeError):  # not the documented object: show it raw
            message = answer.body[:200].decode("utf-8", "replace")
        return str(message).strip() or f"HTTP status {answer.status}"

    def _exchange(
        self, calls: Sequence[tuple[str, str, bytes | None]], deadline: float
    ) -> list[wire.Response]:
        lines: list[Line] = []
        there = self._reachable(deadline)
        try:
            for method, path, body in calls:
                lines.append(Line(there, self._environ, deadline))
                lines[-1].send(wire.request(method, path, body))
            return [line.receive() for line in lines]
        finally:
            for line in lines:
                line.close()

    def _reachable(self, deadline: float) -> Endpoint:
        """The endpoint itself, or that of the program which serves it from now on."""
        if not self.endpoint.program:
            return self.endpoint
        if self._service is None:
            from corral.backends.engine.service import Service

            self._service = Service(self.endpoint, self._environ, deadline)
        return self._service.endpoint

    def _understood(self, headers: dict[str, str]) -> About:
        server = headers.get("server", "")
        product, _, version = server.partition(" ")[0].partition("/")
        product = "Podman" if product == "Libpod" else product or "an engine"
        theirs = _version(headers.get("api-version", ""))
        if theirs is None:
            raise self._error("does not say which version of the Docker API it speaks")
        if theirs < OLDEST_API:
            raise self._error(
                f"speaks the Docker API {theirs[0]}.{theirs[1]} only, which is too old"
            )
        return About(product, version, min(theirs, NEWEST_API))

    def _decoded(self, answer: wire.Response, path: str) -> Any:
        import json

        if answer.status != _OK:
            raise self._refusal(answer, path)
        try:
            return json.loads(answer.body)
        except ValueError as error:
            raise self._error(f"answered {path} with no JSON ({error})") from error

    def _refusal(self, answer: wire.Response, path: str) -> EngineRefusalError:
        words = self.words(answer)
        return EngineRefusalError(
            f"{self.endpoint.url} refuses {path}: {words}",
            status=answer.status,
            answer=words,
            backend=self.endpoint.name,
        )

    def _error(self, what: str) -> EngineError:
        return EngineError(f"{self.endpoint.url} {what}", backend=self.endpoint.name)


def _version(text: str) -> tuple[int, int] | None:
    major, _, minor = text.partition(".")
    if not (major.isdigit() and minor.isdigit()):
        return None
    return int(major), int(minor)
