"""The override that isolates a project's own Compose files from its other worktrees.

Merged by Compose (2.24.4 or later, for the tags) on top of the base files, no service has a host
port that was not claimed or a name that another worktree would have too. What the override cannot
change is in the warnings, by service and key. Labels name the environment, never a worker, so that
a second worker's `up -d` does not recreate containers.
"""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple
from corral.render import compose_database
from corral.render.compose_base import Warned, published_ports
from corral.render.variables import checked
from corral.render.yaml_text import Literal, Tagged, dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as Readable
    from typing import Any

    from corral.render.compose_base import Base, Service
    from corral.render.compose_database import Database
    from corral.render.compose_ports import ContainerPort
    from corral.render.variables import Variables
    from corral.render.yaml_text import Mapping, Node

_RESET = Tagged("!reset", None)
_URL = "DATABASE_URL"


class Publication(NamedTuple):
    """One port as the override publishes it; `name` is the claim's, see `published_ports`."""

    service: str
    target: int
    protocol: str
    host_port: int
    name: str


class OverrideResult(NamedTuple):
    """The override's text, what it publishes, what it cannot isolate, and the text as a tree."""

    text: str
    published: tuple[Publication, ...]
    warnings: tuple[Warned, ...]
    document: Mapping


class _Environment(NamedTuple):
    """What the override is written for."""

    label: Mapping
    address: str
    host_ports: Readable[tuple[str, int, str], int]
    variables: Variables
    database: Database | None


def override_for(
    base: Base,
    *,
    project: str,
    environment_id: str,
    ports: Readable[tuple[str, int, str], int],
    variables: Readable[str, str] | Iterable[tuple[str, str]] = (),
    address: str = "127.0.0.1",
    namespace: str = "corral",
    database: Database | None = None,
) -> OverrideResult:
    """The override for the services of `base`.

    `project`: the claimed project name. `ports`: the claimed host port of every (service, container
    port, protocol) in `published_ports(base)`. `variables`: what every service gets, over what the
    base says; those whose value is a claimed host port or the address are left out, for they are
    wrong inside a container. `address`: where the host ports are. `database`: a companion to add.

    Raises InvalidValueError for a published port that has no claim, a variable that is none, and a
    companion whose name the base uses already.
    """
    published = tuple(
        Publication(port.service, port.target, port.protocol, _claimed(port.key, ports), port.name)
        for port in published_ports(base)
    )
    if database is not None and base.service(database.name) is not None:
        raise InvalidValueError(
            f"the service {database.name} is in the base files already",
            remedy="rename it there",
            resource=database.name,
        )
    outside = {str(port) for port in ports.values()} | {address}
    inside = tuple(pair for pair in checked(variables) if pair[1] not in outside)
    wanted = _Environment({f"{namespace}.env": environment_id}, address, ports, inside, database)
    document: Mapping = {"name": project, "services": _services(base, wanted)}
    document |= _named(base, database)
    warned = () if database is None else _out_of_reach(base, database)
    return OverrideResult(dump(document), published, (*base.warnings, *warned), document)


def _claimed(key: tuple[str, int, str], ports: Readable[tuple[str, int, str], int]) -> int:
    if key not in ports:
        service, target, protocol = key
        raise InvalidValueError(
            f"{service} publishes {target}/{protocol}, which has no claimed port",
            remedy="claim a port for it first",
            resource=service,
        )
    return ports[key]


def _out_of_reach(base: Base, database: Database) -> tuple[Warned, ...]:
    reason = f"{database.name} cannot be reached by its name from here, so {_URL} is not set"
    return tuple(Warned(s.name, "network_mode", reason) for s in base.services if s.network_mode)


def _services(base: Base, wanted: _Environment) -> Mapping:
    services: Mapping = {each.name: _service(each, wanted) for each in base.services}
    if wanted.database is not None:
        services[wanted.database.name] = compose_database.service(
            wanted.database, wanted.label, wanted.address
        )
    return services


def _named(base: Base, database: Database | None) -> Mapping:
    """Volumes and networks: fixed names and subnets taken away, the companion's own added."""
    volumes: Mapping = {name: {"name": _RESET} for name in base.volumes}
    networks: dict[str, Mapping] = {name: {"name": _RESET} for name in base.networks}
    for name in base.subnets:
        networks.setdefault(name, {})["ipam"] = _RESET
    if database is not None:
        volumes[database.volume] = {}
        networks[database.name] = {}
    found: Mapping = {}
    if volumes:
        found["volumes"] = volumes
    if networks:
        found["networks"] = dict(networks)
    return found


def _service(service: Service, wanted: _Environment) -> Mapping:
    written: Mapping = dict.fromkeys(service.resets, _RESET)
    if service.has_ports:
        written["ports"] = Tagged("!override", _ports(service, wanted))
    written["labels"] = dict(wanted.label)
    variables: Mapping = dict(wanted.variables)
    networks: dict[str, Mapping] = {}
    for network, key in service.fixed_addresses:
        networks.setdefault(network, {})[key] = _RESET
    environment: Node = variables
    if wanted.database is not None and not service.network_mode:
        name = wanted.database.name
        written["env_file"] = [wanted.database.client_env]
        written["depends_on"] = {name: {"condition": "service_healthy"}}
        if service.networks is None:
            networks["default"] = {}
        networks[name] = {}
        environment = _without_url(service, variables)
    if environment:
        written["environment"] = environment
    if networks:
        written["networks"] = dict(networks)
    return written


def _ports(service: Service, wanted: _Environment) -> list[Node]:
    """Every published port at its claimed host port; wide ranges at ports that the engine deals."""
    written: list[Node] = []
    for port in service.ports:
        host_port = wanted.host_ports[service.name, port.target, port.protocol]
        written.append(_port(f"{wanted.address}:{host_port}", port))
    for dealt in service.dealt:
        numbers = f"{dealt.first}-{dealt.last}" if dealt.last > dealt.first else str(dealt.first)
        written.append(f"{wanted.address}::{numbers}{_suffix(dealt.protocol)}")
    return written


def _port(host: str, port: ContainerPort) -> Literal:
    return Literal(f"{host}:{port.expression or port.target}{_suffix(port.protocol)}")


def _suffix(protocol: str) -> str:
    return "" if protocol == "tcp" else f"/{protocol}"


def _without_url(service: Service, variables: Mapping) -> Node:
    """The environment with the base's own DATABASE_URL out of the way of the companion's.

    An `env_file` gives way to `environment`, and one entry of a list cannot be reset, so where the
    base names it, the whole environment is written again as it stands there.
    """
    inside = {name: value for name, value in variables.items() if name != _URL}
    if _URL not in service.environment:
        return inside
    own: Mapping = {
        name: _as_written(value) for name, value in service.environment.items() if name != _URL
    }
    return Tagged("!override", own | inside)


def _as_written(value: Any) -> Node:
    if value is None:  # handed on from whoever calls compose
        return None
    if isinstance(value, bool):
        return Literal("true" if value else "false")
    return Literal(str(value))
