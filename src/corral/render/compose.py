"""A Compose file of its own, for an environment without a base file, or one service to override.

Without a service name it is complete: a service named after the environment that is built from
the project directory, so it may be merged with any base or stand alone. With one it changes that
service of the user's base: its only published port is the environment's. Values reach the
container unchanged: every `$` is doubled, since Compose expands variables in the file.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple
from corral.render.yaml_text import Tagged, dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.variables import Variables
    from corral.render.yaml_text import Mapping, Node

POSTGRES_IMAGE = "postgres:17"
POSTGRES_PORT = 5432
_DATA = "/var/lib/postgresql/data"


class Companion(NamedTuple):
    """A PostgreSQL service beside the application: its name, volume, and login.

    It is reached by other services only, at `name:5432`; nothing of it is published, which is why
    it asks for no password.
    """

    name: str
    volume: str
    user: str = "postgres"
    database: str = "postgres"

    @property
    def url(self) -> str:
        """The address that other services of the project connect to."""
        return f"postgresql://{self.user}@{self.name}:{POSTGRES_PORT}/{self.database}"


def environment(variables: Variables) -> Mapping:
    """The variables as a Compose `environment` mapping."""
    return dict(variables)


def fragment(variables: Variables, service: str) -> str:
    """A Compose file that gives one service the variables and changes nothing else of it."""
    return dump({"services": {service: {"environment": environment(variables)}}})


def health_check(user: str, database: str) -> Mapping:
    """A health check that is satisfied once the server takes queries, not while it sets up."""
    return {
        "test": ["CMD", "pg_isready", "-h", "127.0.0.1", "-U", user, "-d", database],
        "interval": "2s",
        "timeout": "5s",
        "retries": 30,
    }


def standalone(
    container: str,
    port: int,
    variables: Variables,
    *,
    service: str = "",
    companion: Companion | None = None,
) -> str:
    """The Compose file: `container` publishes `port` on 127.0.0.1 and gets the variables."""
    published: list[Node] = [f"127.0.0.1:{port}:{port}"]
    application: Mapping = {} if service else {"build": "."}
    application["container_name"] = container
    application["ports"] = Tagged("!override", published) if service else published
    application["environment"] = environment(variables)
    services: Mapping = {service or container: application}
    document: Mapping = {"services": services}
    if companion:
        application["depends_on"] = {companion.name: {"condition": "service_healthy"}}
        services[companion.name] = postgres(companion)
        document["volumes"] = {companion.volume: {}}
    return dump(document)


def postgres(companion: Companion) -> Mapping:
    """The companion as a Compose service."""
    return {
        "image": POSTGRES_IMAGE,
        "container_name": companion.name,
        "environment": {
            "POSTGRES_USER": companion.user,
            "POSTGRES_DB": companion.database,
            "POSTGRES_HOST_AUTH_METHOD": "trust",
        },
        "volumes": [f"{companion.volume}:{_DATA}"],
        "healthcheck": health_check(companion.user, companion.database),
    }
