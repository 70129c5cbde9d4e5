"""What a worktree's environment is made of, said in one value, and the variables it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, TypeVar

from corral.decide.ports import check_port
from corral.errors import InvalidValueError
from corral.render.ids import (
    LIMIT,
    NAMESPACE,
    check_namespace,
    check_worktree_id,
    container_name,
    schema_name,
)
from corral.render.variables import checked, refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.render.variables import Variables

_Choice = TypeVar("_Choice", bound=Enum)


class DbIsolation(StrEnum):
    """How the worktree's data is kept apart, and the variables that say so.

    `none`: not at all. `schema`: `DB_SCHEMA`. `file`: an SQLite file in `DATABASE_URL`.
    `container`: `DB_CONTAINER`, and a PostgreSQL service in the Compose file.
    """

    NONE = "none"
    SCHEMA = "schema"
    FILE = "file"
    CONTAINER = "container"


class OutputFormat(StrEnum):
    """The text to generate; docs/reference/formats has a page on each."""

    DOTENV = "dotenv"
    DOCKER_COMPOSE = "docker-compose"
    SHELL = "shell"
    JSON = "json"
    GITHUB = "github"
    DIRENV = "direnv"


def choose(kind: type[_Choice], value: object, what: str) -> _Choice:
    """The member, given itself or by its value; else an InvalidValueError naming `what`."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(str(member.value) for member in kind)
        raise InvalidValueError(
            f"{what}: {value!r} is no choice", remedy=f"use one of {choices}"
        ) from None


# What the modes set. A mode reserves no other mode's names: without a database of corral's own, a
# DATABASE_URL among the extra variables is the user's business.
_RESERVED = {
    DbIsolation.NONE: frozenset({"PORT"}),
    DbIsolation.SCHEMA: frozenset({"PORT", "DB_SCHEMA"}),
    DbIsolation.FILE: frozenset({"PORT", "DATABASE_URL"}),
    DbIsolation.CONTAINER: frozenset({"PORT", "DB_CONTAINER", "DATABASE_URL"}),
}


@dataclass(frozen=True, slots=True)
class EnvIsolationSpec:
    """One worktree's environment. Every field is checked when the value is made.

    `worktree_id`: a short id of the worktree, any text that is not empty. `port`: the TCP port
    that its application binds, 1 to 65535. `db_isolation`: a `DbIsolation` or its value.
    `db_schema`: for SCHEMA; empty: `schema_name(worktree_id)`. `db_file`: for FILE; empty:
    `/tmp/<container name>.db`. `container_suffix`: what follows the namespace in the container's
    name; empty: the worktree's id. `extra_vars`: more variables, none of those that the mode sets.
    `namespace`: begins the derived names.

    Raises InvalidValueError (a CorralError and a ValueError) naming the field or variable.
    """

    worktree_id: str
    port: int = 8000
    db_isolation: DbIsolation = DbIsolation.NONE
    db_schema: str = ""
    db_file: str = ""
    container_suffix: str = ""
    extra_vars: Mapping[str, str] = field(default_factory=dict, hash=False)
    namespace: str = NAMESPACE

    def __post_init__(self) -> None:
        check_worktree_id(self.worktree_id)
        check_namespace(self.namespace)
        check_port(self.port)
        mode = choose(DbIsolation, self.db_isolation, "db_isolation")
        _check_schema(self.db_schema)
        _check_file(self.db_file)
        _check_suffix(self.container_suffix)
        extra = dict(checked(self.extra_vars))
        for name in extra:
            if name in _RESERVED[mode]:
                raise refused(name, f"extra_vars must not redefine what {mode} mode sets")
        # a frozen value that was given by its text, and a mapping that nobody else holds
        object.__setattr__(self, "db_isolation", mode)
        object.__setattr__(self, "extra_vars", extra)

    @property
    def container(self) -> str:
        """The name of the application's container."""
        return container_name(self.container_suffix or self.worktree_id, namespace=self.namespace)

    @property
    def companion(self) -> str:
        """The name of the PostgreSQL service beside it."""
        identity = self.container_suffix or self.worktree_id
        return container_name(identity, "db", namespace=self.namespace)


def _check_schema(name: object) -> None:
    """Names that mean the same with and without quotes, since applications interpolate them."""
    if name == "":
        return
    word = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not word or len(str(name)) > LIMIT or str(name).lower().startswith("pg_"):
        raise InvalidValueError(
            f"db_schema: {name!r} is no plain name for a PostgreSQL schema",
            remedy=f"use up to {LIMIT} letters, digits and underscores, not beginning with pg_",
        )


def _check_file(path: object) -> None:
    """Refuse what readers of a database URL disagree on: some decode `%`, some cut at `?`, `#`."""
    fine = isinstance(path, str) and (path == "" or (path.isprintable() and path.strip()))
    if not fine or not set("%?#").isdisjoint(str(path)):
        raise InvalidValueError(
            f"db_file: {path!r} cannot stand in a database URL that every reader takes alike",
            remedy="use a path without %, ?, # and control characters",
        )


def _check_suffix(suffix: object) -> None:
    if not isinstance(suffix, str) or (suffix and not suffix.strip()):
        raise InvalidValueError(
            f"container_suffix: {suffix!r} names nothing", remedy="give a text or leave it empty"
        )


def database_file(spec: EnvIsolationSpec) -> str:
    """The SQLite file of the worktree."""
    own = container_name(spec.worktree_id, namespace=spec.namespace)
    return spec.db_file or f"/tmp/{own}.db"  # noqa: S108 - the documented place


def variables_of(spec: EnvIsolationSpec) -> Variables:
    """PORT, what the database mode sets, then the extra variables in their order."""
    mine = [("PORT", str(spec.port))]
    match spec.db_isolation:
        case DbIsolation.SCHEMA:
            name = spec.db_schema or schema_name(spec.worktree_id, namespace=spec.namespace)
            mine.append(("DB_SCHEMA", name))
        case DbIsolation.FILE:
            mine.append(("DATABASE_URL", f"sqlite:///{database_file(spec)}"))
        case DbIsolation.CONTAINER:
            mine.append(("DB_CONTAINER", spec.container))
    return (*mine, *spec.extra_vars.items())
