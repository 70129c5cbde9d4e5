"""A PostgreSQL of an environment's own beside the services of the user's Compose files.

Its password is in two files that the caller keeps with mode 0600, one for the server and one for
the applications; the override names the files. Inside, applications reach it by the service's name,
outside it is on the claimed port of 127.0.0.1.
"""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple
from corral.render import dotenv
from corral.render.compose import POSTGRES_IMAGE, POSTGRES_PORT, health_check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.yaml_text import Mapping

_DATA = "/var/lib/postgresql/data"
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class Database(NamedTuple):
    """The companion. `name`: of the service and its network. `port`: claimed.

    `server_env` and `client_env`: absolute paths of the two files with the password.
    """

    name: str
    port: int
    server_env: str
    client_env: str
    user: str = "corral"
    database: str = "app"
    image: str = POSTGRES_IMAGE

    @property
    def volume(self) -> str:
        """The named volume that holds the data."""
        return f"{self.name}-data"

    def container(self, project: str) -> str:
        """What Compose calls its container, for `docker exec`: the value of DB_CONTAINER."""
        return f"{project}-{self.name}-1"


def _login(database: Database, password: str) -> str:
    if not password or not _WORD.issuperset(password):
        raise InvalidValueError("the password is empty or holds more than letters, digits, - and _")
    return f"postgresql://{database.user}:{password}"


def inside_url(database: Database, password: str) -> str:
    """DATABASE_URL for the services of the project."""
    return f"{_login(database, password)}@{database.name}:{POSTGRES_PORT}/{database.database}"


def outside_url(database: Database, password: str, address: str = "127.0.0.1") -> str:
    """DATABASE_URL for programs on the host."""
    return f"{_login(database, password)}@{address}:{database.port}/{database.database}"


def server_file(database: Database, password: str) -> str:
    """The content of `server_env`, to be written with mode 0600."""
    _login(database, password)
    return dotenv.lines(
        (
            ("POSTGRES_USER", database.user),
            ("POSTGRES_DB", database.database),
            ("POSTGRES_PASSWORD", password),
        )
    )


def client_file(database: Database, password: str) -> str:
    """The content of `client_env`, to be written with mode 0600."""
    return dotenv.lines((("DATABASE_URL", inside_url(database, password)),))


def service(database: Database, label: Mapping, address: str) -> Mapping:
    """The companion as a Compose service."""
    return {
        "image": database.image,
        "labels": label,
        "env_file": [database.server_env],
        "ports": [f"{address}:{database.port}:{POSTGRES_PORT}"],
        "volumes": [f"{database.volume}:{_DATA}"],
        "networks": [database.name],
        "healthcheck": health_check(database.user, database.database),
    }
