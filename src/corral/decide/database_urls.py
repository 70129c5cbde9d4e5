"""The URL of an environment's own database, made from that of the server."""

from __future__ import annotations

from corral.errors import ConfigurationError

_POSTGRES = ("postgresql", "postgres")


def sqlite_url(path: str) -> str:
    """The URL of an SQLite file with an absolute path: four slashes, as SQLAlchemy and others want.

    Raises ConfigurationError for a path that no URL carries unchanged.
    """
    for character in "?#%":
        if character in path:
            raise ConfigurationError(
                f"the path {path} holds a {character!r}, on which readers of URLs disagree",
                remedy="set CORRAL_STATE_DIR to a directory without it",
                resource=path,
            )
    return f"sqlite:///{path}"


def schema_url(url: str, schema: str) -> str:
    """The server's URL with the schema first in the search path, as libpq's `options`."""
    base, query = _parts(url)
    return f"{base}?{f'{query}&' if query else ''}options=-csearch_path%3D{schema}"


def database_url(url: str, name: str) -> str:
    """The server's URL with another database's name."""
    base, query = _parts(url)
    scheme, _, rest = base.partition("://")
    server = rest.partition("/")[0]
    return f"{scheme}://{server}/{name}{f'?{query}' if query else ''}"


def without_password(url: str) -> str:
    """The URL as it may stand on a screen; `corral db url` prints all of it."""
    head, at, rest = url.rpartition("@")
    scheme, separator, login = head.partition("://")
    user, colon, _ = login.partition(":")
    return f"{scheme}{separator}{user}:***{at}{rest}" if at and colon else url


def _parts(url: str) -> tuple[str, str]:
    """The URL before its query, and the query; ConfigurationError unless it is PostgreSQL's."""
    base, _, query = url.partition("?")
    scheme, separator, _ = base.partition("://")
    if not separator or scheme.partition("+")[0] not in _POSTGRES:
        raise ConfigurationError(
            "database.url does not name a PostgreSQL server: expected postgresql://...",
            remedy='set it in corral.toml: [database] url = "postgresql://localhost/postgres"',
            resource="database.url",
        )
    return base, query
