"""Ways to an engine that only the docker command line knows: ssh, TLS, and other contexts.

`docker system dial-stdio` connects its stdin and stdout to the engine of a context.
"""

from __future__ import annotations

from corral.backends import _command
from corral.backends.engine.states import EngineAbsentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.backends.engine.endpoints import Endpoint


def arguments(endpoint: Endpoint) -> list[str]:
    """The command line that leads to the endpoint."""
    if endpoint.context:
        return ["docker", "--context", endpoint.context, "system", "dial-stdio"]
    return ["docker", "--host", endpoint.url, "system", "dial-stdio"]


def dial(endpoint: Endpoint, environ: Mapping[str, str]) -> _command.Stream:
    """A stream to the engine. Raises EngineAbsentError where there is no docker program."""
    # An explicit --context and an inherited DOCKER_HOST contradict each other.
    kept = {key: value for key, value in environ.items() if key != "DOCKER_HOST"}
    try:
        return _command.connect(arguments(endpoint), env=kept)
    except _command.ProgramMissingError as error:
        raise EngineAbsentError(
            f"{endpoint.url} is reached through the docker program: {error.message}",
            backend=endpoint.name,
            remedy=error.remedy,
        ) from error
