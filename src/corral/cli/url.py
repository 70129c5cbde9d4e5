"""`corral url NAME`: where a port of this environment is reached."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.decide.spelling import did_you_mean
from corral.errors import NotFoundError, UsageError
from corral.services.environments import require
from corral.services.holdings import holdings_of
from corral.services.variables import LOOPBACK
from corral.store import claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corral.model.environment import Environment
    from corral.services.holdings import Holdings, Port


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="the port; may be left out where there is one only"
    )


def run(arguments: Namespace) -> Answer:
    """Print the URL."""
    context = context_of(arguments)
    environment = require(context)
    with context.registry.read() as conn:
        held = holdings_of(claims.of_environment(conn, environment.id))
    port = _port(environment, held, arguments.name)
    host = held.address or LOOPBACK
    scheme = "http" if port.protocol == "tcp" else port.protocol
    url = f"{scheme}://{host}:{port.number}"
    found = {"name": port.name, "host": host, "port": port.number, "url": url}
    return Answer(found, lambda: f"{url}\n")


def _port(environment: Environment, held: Holdings, name: str | None) -> Port:
    if name is None and len(held.ports) == 1:
        return held.ports[0]
    if name is None:
        raise UsageError(
            f"{environment.place.path} has {len(held.ports)} ports",
            remedy=f"name one: {', '.join(port.name for port in held.ports) or 'corral up --port'}",
        )
    port = held.port(name)
    if port is None:
        known = ", ".join(each.name for each in held.ports) or "none"
        raise NotFoundError(
            f"{environment.place.path} has no port {name!r}"
            f"{did_you_mean(name, [each.name for each in held.ports])}",
            remedy=f"its ports: {known}; claim one: corral port claim {name}",
            resource=name,
        )
    return port
