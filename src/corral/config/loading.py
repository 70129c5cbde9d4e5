"""Put the settings together: flag, variable, worktree-local, repository's, user's file, default.

Where no file and no variable says anything, nothing is imported and nothing is parsed.
"""

from __future__ import annotations

import os

from corral.config.settings import CommandSource, DatabaseSettings, PortWish, Settings
from corral.decide.ports import PRIVILEGED_BELOW, Pool
from corral.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from corral.config.files import Document

# Variables that belong to corral and are no settings.
NOT_SETTINGS = frozenset(
    {
        "CORRAL_FENCE",
        "CORRAL_KEEP",
        "CORRAL_OWNER",
        "CORRAL_REQUIRE_ENGINES",
        "CORRAL_SESSION",
        "CORRAL_STATE_DIR",
    }
)
_FILES = ("corral.toml", "corral.local.toml", "pyproject.toml")
_COMMANDS = ("setup.after_up", "database.template.migrate")


def project_root(directory: str) -> str:
    """The project's directory around an absolute path: the worktree's top.

    Outside git the nearest directory upwards that holds a corral.toml, else `directory`.
    """
    above = _upwards(directory)
    for place in above:
        entry = os.path.join(place, ".git")
        if os.path.isfile(entry) or os.path.isfile(os.path.join(entry, "HEAD")):
            return place
    configured = (p for p in above if os.path.isfile(os.path.join(p, _FILES[0])))
    return next(configured, directory)


def _upwards(path: str) -> list[str]:
    found = [path]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def user_file(environ: Mapping[str, str]) -> str:
    """The user's own file; a relative XDG_CONFIG_HOME counts as unset, as its standard says."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "corral", "corral.toml")


def load_settings(directory: str, environ: Mapping[str, str]) -> Settings:
    """The settings in force for a directory (an absolute path) and a set of variables.

    Raises ConfigurationError that names file or variable, key and what was expected.
    """
    root = project_root(directory)
    user = user_file(environ)
    candidates = (user, *(os.path.join(root, name) for name in _FILES))
    variables = {k: v for k, v in environ.items() if k.startswith("CORRAL_")}
    for name in NOT_SETTINGS:
        variables.pop(name, None)
    if not variables and not any(os.path.lexists(path) for path in candidates):
        return Settings(root=root)
    return _loaded(root, user, variables)


def _loaded(root: str, user: str, variables: Mapping[str, str]) -> Settings:
    from corral.config import files

    own = files.document(user)
    project = files.project_documents(root)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for document in ((own,) if own else ()) + project:
        values.update(document.values)
        sources.update(dict.fromkeys(document.values, document.path))
    if variables:
        from corral.config.variables import read

        ports = [key.partition(".")[2] for key in values if key.startswith("ports.")]
        for variable, key, value in read(variables, [p for p in ports if "." not in p]):
            values[key], sources[key] = value, variable
    settings = _settings(root, values, sources)
    return settings._replace(commands_from=_commands_from(project, sources))


def _settings(root: str, values: dict[str, Any], sources: dict[str, str]) -> Settings:
    default = Settings()
    ports = _ports(values)
    _refuse_shared_variables(ports, values, sources)
    return Settings(
        root=root,
        namespace=values.get("namespace", default.namespace),
        pool=_pool(values, sources),
        ports=ports,
        database=DatabaseSettings(
            isolation=values.get("database.isolation", "none"),
            url=values.get("database.url", ""),
            seed=values.get("database.seed", ""),
            migrate=values.get("database.template.migrate", ""),
            inputs=values.get("database.template.inputs", ()),
        ),
        compose_files=values.get("compose.files"),
        vars=tuple(
            (key.removeprefix("vars."), value)
            for key, value in values.items()
            if key.startswith("vars.")
        ),
        link=values.get("files.link", ()),
        copy=values.get("files.copy", ()),
        after_up=values.get("setup.after_up", ()),
        dotenv=values.get("outputs.dotenv", default.dotenv),
        reap=values.get("keeper.reap", default.reap),
        grace=values.get("keeper.grace", default.grace),
        protect=frozenset(values.get("protect.programs", ())),
        sources=tuple((key, where) for key, where in sources.items() if values[key] is not None),
    )


def _ports(values: Mapping[str, Any]) -> tuple[PortWish, ...]:
    names = dict.fromkeys(key.split(".")[1] for key in values if key.startswith("ports."))
    return tuple(
        PortWish(
            name,
            values.get(f"ports.{name}.preferred"),
            values.get(f"ports.{name}.env"),
            values.get(f"ports.{name}.handoff", "hold"),
            values.get(f"ports.{name}.protocol", "tcp"),
        )
        for name in names
    )


def _refuse_shared_variables(
    ports: Sequence[PortWish], values: Mapping[str, Any], sources: Mapping[str, str]
) -> None:
    """No two ports, and no port and `[vars]`, may mean the same variable or the same number."""
    taken: dict[str, str] = {}
    for wish in ports:
        where = _source_of_port(wish.name, sources)
        numbers = {} if wish.preferred is None else {f"{wish.protocol} {wish.preferred}": "port"}
        for thing, what in {wish.variable: "variable", **numbers}.items():
            if thing in taken:
                raise ConfigurationError(
                    f"{where}: ports.{wish.name} and {taken[thing]} share the {what} {thing}",
                    resource=f"ports.{wish.name}",
                    remedy="give one of them another",
                )
            taken[thing] = f"ports.{wish.name}"
        if f"vars.{wish.variable}" in values:
            raise ConfigurationError(
                f"{sources[f'vars.{wish.variable}']}: vars.{wish.variable} is the variable of "
                f"ports.{wish.name}: expected a name that is not taken",
                resource=f"vars.{wish.variable}",
                remedy="remove it, or give the port another `env`",
            )


def _source_of_port(name: str, sources: Mapping[str, str]) -> str:
    keys = (f"ports.{name}.env", f"ports.{name}.preferred", f"ports.{name}")
    return next((sources[key] for key in keys if key in sources), "--port")


def _pool(values: Mapping[str, Any], sources: Mapping[str, str]) -> Pool:
    default = Settings().pool
    pool = Pool(values.get("pool.first", default.first), values.get("pool.last", default.last))
    if PRIVILEGED_BELOW <= pool.first <= pool.last:
        return pool
    key = "pool.first" if "pool.first" in sources else "pool.last"
    raise ConfigurationError(
        f"{sources[key]}: the pool {pool.first}-{pool.last} is empty or reaches below "
        f"{PRIVILEGED_BELOW}: expected {PRIVILEGED_BELOW} <= pool.first <= pool.last",
        resource=key,
        remedy="correct pool.first or pool.last",
    )


def _commands_from(project: Sequence[Document], sources: Mapping[str, str]) -> CommandSource | None:
    """What must be trusted: all that the project's files say, once one of them brings a command.

    All of it, because what `[vars]` says reaches the commands as well.
    """
    paths = {document.path for document in project}
    if not any(sources.get(key) in paths for key in _COMMANDS):
        return None
    from hashlib import sha256

    digest = sha256()
    names = []
    for document in project:
        names.append(os.path.basename(document.path))
        digest.update(f"{names[-1]} {len(document.content)}\n".encode())
        digest.update(document.content)
    return CommandSource(tuple(names), digest.hexdigest())


def with_flags(
    settings: Settings, *, isolation: str | None = None, ports: Sequence[PortWish] = ()
) -> Settings:
    """The settings with what the command line says: `--db` and `--port`, above all the rest.

    A flag for a configured port keeps what the configuration says besides its number.
    """
    sources = dict(settings.sources)
    wishes = {wish.name: wish for wish in settings.ports}
    for flag in ports:
        base = wishes.get(flag.name, flag)
        wishes[flag.name] = base._replace(preferred=flag.preferred or base.preferred)
        if flag.preferred:
            sources[f"ports.{flag.name}.preferred"] = "--port"
    values = {f"vars.{name}": text for name, text in settings.vars}
    merged = tuple(wishes.values())
    _refuse_shared_variables(merged, values, sources | dict.fromkeys(values, "vars"))
    database = settings.database
    if isolation is not None:
        database = database._replace(isolation=isolation)
        sources["database.isolation"] = "--db"
    return settings._replace(ports=merged, database=database, sources=tuple(sources.items()))
