"""A worktree's Compose file that changes the user's own base, from a spec alone.

One service is the application: its first published port is the environment's. Every other port
that the base publishes is left to the engine, since nothing was claimed for it.
"""

from __future__ import annotations

import os

from corral.errors import InvalidValueError
from corral.render import compose
from corral.render.compose_base import read_base
from corral.render.compose_override import override_for
from corral.render.compose_ports import PortRange
from corral.render.yaml_text import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from corral.render.compose import Companion
    from corral.render.compose_base import Base, Service
    from corral.render.variables import Variables


def read(base: str | os.PathLike[str]) -> Base:
    """The base: a path, or YAML text (which has a line break, as no path that is meant has).

    Raises ConfigurationError for what cannot be read or is no Compose file.
    """
    given = os.fspath(base)
    if "\n" not in given:
        return read_base([given], {})
    place = os.path.abspath("compose.yaml")  # what `extends` and `include` start from
    return read_base([place], {}, {place: given})


def application_of(base: Base, name: str) -> Service:
    """The named service, or the only one that publishes a port. Raises InvalidValueError."""
    if name:
        found = base.service(name)
        if found is None:
            raise InvalidValueError(
                f"service: {name!r} is not in the base file",
                remedy=f"name one of {', '.join(each.name for each in base.services)}",
            )
        return found
    publishing = [each for each in base.services if each.ports]
    if len(publishing) != 1:
        raise InvalidValueError(
            f"service: {len(publishing)} services of the base file publish a port",
            remedy="name the one that gets the port",
        )
    return publishing[0]


def override(
    base: Base,
    application: Service,
    *,
    project: str,
    namespace: str,
    port: int,
    variables: Variables,
    companion: Companion | None = None,
) -> str:
    """The override: the application on `port` of 127.0.0.1, nothing with a fixed name or port."""
    services = tuple(_left_to_engine(each, keep=each == application) for each in base.services)
    kept = application.ports[:1]
    result = override_for(
        base._replace(services=services),
        project=project,
        environment_id=project,
        ports={(application.name, each.target, each.protocol): port for each in kept},
        variables=variables,
        namespace=namespace,
    )
    document: dict[str, Any] = result.document
    if companion is not None:
        _add(document, application, companion)
    return dump(document)


def _left_to_engine(service: Service, *, keep: bool) -> Service:
    first = 1 if keep else 0
    dealt = (PortRange(p.target, p.target, p.protocol) for p in service.ports[first:])
    return service._replace(ports=service.ports[:first], dealt=(*service.dealt, *dealt))


def _add(document: dict[str, Any], application: Service, companion: Companion) -> None:
    """The database beside the application, in the networks that it is in."""
    database = compose.postgres(companion)
    if application.networks is not None:
        database["networks"] = list(application.networks)
    document["services"][companion.name] = database
    document.setdefault("volumes", {})[companion.volume] = {}
    own = document["services"][application.name]
    own.setdefault("environment", {})["DATABASE_URL"] = companion.url
    own["depends_on"] = {companion.name: {"condition": "service_healthy"}}
