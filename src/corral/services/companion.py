"""A PostgreSQL container of the environment's own, as a service of its compose project.

Its password is random; it is in the claim, and in two files of mode 0600 that compose reads.
"""

from __future__ import annotations

import os

from corral.config.settings import PortWish
from corral.kernel import paths
from corral.services.databases import own_directory
from corral.services.holdings import Database
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.environment import Environment
    from corral.render.compose_database import Database as Companion
    from corral.services.composing import Project
    from corral.services.context import Context
    from corral.services.holdings import Holdings

ISOLATION = "container"
# A service and a port of this name; the second where the user has a service or port of the first.
NAMES = ("database", "own-database")
_SERVER, _CLIENT = "database-server.env", "database-client.env"


def wish(project: Project, taken: Iterable[str]) -> PortWish:
    """The wish for the companion's port, which also names its service."""
    services = {service.name for service in project.base.services}
    known = services | set(taken)
    return PortWish(next((each for each in NAMES if each not in known), NAMES[-1]))


def _described(
    context: Context, environment: Environment, held: Holdings, project: Project
) -> Companion | None:
    from corral.render.compose_database import Database as Described

    services = {service.name for service in project.base.services}
    port = next((p for p in held.ports if p.name in NAMES and p.name not in services), None)
    if port is None:
        return None
    own = statedir.environment_dir(context.state_dir, environment.id)
    return Described(port.name, port.number, os.path.join(own, _SERVER), os.path.join(own, _CLIENT))


def companion_of(
    context: Context, environment: Environment, held: Holdings, project: Project
) -> Companion | None:
    """The companion that the environment has claimed, or None."""
    if held.database is None or held.database.isolation != ISOLATION:
        return None
    return _described(context, environment, held, project)


def planned(
    context: Context, environment: Environment, held: Holdings, project: Project, password: str
) -> Database:
    """The database to claim; `held` has the companion's port and the project's name."""
    from corral.render.compose_database import outside_url

    described = _described(context, environment, held, project)
    if described is None:
        raise AssertionError("the companion's port was claimed before")
    address = held.address or "127.0.0.1"
    container = described.container(held.name("compose") or "")
    return Database(ISOLATION, container, outside_url(described, password, address))


def new_password() -> str:
    """A password of 128 random bits, in letters that a URL carries."""
    return os.urandom(16).hex()


def write_files(
    context: Context, environment: Environment, held: Holdings, project: Project
) -> None:
    """Keep the password in the two files that the override names."""
    from corral.render.compose_database import client_file, server_file

    described = companion_of(context, environment, held, project)
    if described is None or held.database is None:
        return
    own_directory(context, environment)
    password = held.database.url.partition("@")[0].rpartition(":")[2]
    for path, text in (
        (described.server_env, server_file(described, password)),
        (described.client_env, client_file(described, password)),
    ):
        if not os.path.isfile(path) or paths.read_regular(path) != text.encode():
            paths.atomic_write(path, text.encode())
