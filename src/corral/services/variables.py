"""The variables of an environment, in the order in which they are written everywhere."""

from __future__ import annotations

from corral.config.settings import port_variable
from corral.decide.references import filled_in
from corral.errors import ConfigurationError
from corral.services.holdings import holdings_of
from corral.store import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

    from corral.config import Settings
    from corral.model.environment import Environment
    from corral.services.holdings import Holdings

LOOPBACK = "127.0.0.1"
# What the tools themselves read; k3d reads no such variable.
_CLUSTER_NAMES = {
    "cluster:kind": "KIND_CLUSTER_NAME",
    "cluster:minikube": "MINIKUBE_PROFILE",
}


def variables_of(
    conn: Connection, environment: Environment, settings: Settings
) -> tuple[tuple[str, str], ...]:
    """The variables of a registered environment. Raises ConfigurationError as `variables` does."""
    return variables(
        environment, holdings_of(claims.of_environment(conn, environment.id)), settings
    )


def variables(
    environment: Environment, held: Holdings, settings: Settings
) -> tuple[tuple[str, str], ...]:
    """(name, value) of everything that the environment hands to programs.

    Raises ConfigurationError for a `[vars]` entry that takes the name of a generated variable or
    refers to something that the environment does not have.
    """
    found: dict[str, str] = {}
    for name, value in _generated(held, settings):
        found.setdefault(name, value)
    known = references(environment, held)
    for name, text in settings.vars:
        if name in found:
            raise ConfigurationError(
                f"vars.{name}: {name} is a variable that corral generates here: expected another "
                "name",
                remedy="rename it in [vars]",
                resource=f"vars.{name}",
            )
        found[name] = filled_in(f"vars.{name}", text, known)
    return tuple(found.items())


def _generated(held: Holdings, settings: Settings) -> Iterator[tuple[str, str]]:
    if held.address is not None:
        yield "HOST", held.address
    named = {wish.name: wish.variable for wish in settings.ports}
    for port in held.ports:
        yield named.get(port.name) or port_variable(port.name), str(port.number)
    servers = [port for port in held.ports if port.name not in database_ports(held)]
    if len(servers) == 1:
        yield "PORT", str(servers[0].number)
    yield from _of_database(held)
    for scope, variable in _CLUSTER_NAMES.items():
        name = held.name(scope)
        if name is not None:
            yield variable, name
    if held.kubeconfig:
        yield "KUBECONFIG", held.kubeconfig


def database_ports(held: Holdings) -> frozenset[str]:
    """The names of the ports that only the environment's own database container listens on."""
    database = held.database
    if database is None or database.isolation != "container":
        return frozenset()
    return frozenset(
        port.name for port in held.ports if f":{port.number}/" in database.url.rpartition("@")[2]
    )


def _of_database(held: Holdings) -> Iterator[tuple[str, str]]:
    database = held.database
    if database is None:
        return
    if database.url:
        yield "DATABASE_URL", database.url
    words = {"schema": "DB_SCHEMA", "database": "DB_NAME", "container": "DB_CONTAINER"}
    if database.isolation in words:
        yield words[database.isolation], database.name


def references(environment: Environment, held: Holdings) -> dict[str, str]:
    """What `${...}` may name in a value of `[vars]`."""
    place = environment.place
    known = {f"ports.{port.name}": str(port.number) for port in held.ports}
    known["address"] = held.address or LOOPBACK
    if held.database is not None:
        known["database.name"] = held.database.name
        if held.database.url:
            known["database.url"] = held.database.url
    compose = held.name("compose")
    if compose is not None:
        known["compose.project"] = compose
    return known | {
        "env.id": environment.id,
        "env.path": place.path,
        "env.name": place.worktree or place.repository,
        "env.repository": place.repository,
        "env.main": place.main,
    }
