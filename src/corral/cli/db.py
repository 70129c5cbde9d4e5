"""`corral db create|reset|drop|url|list`: this environment's own database."""

from __future__ import annotations

from corral.cli.asking import approved
from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.decide.database_urls import without_password
from corral.errors import ConfigurationError, UsageError
from corral.services import databases, environments, owners
from corral.services.claiming import Claimant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.model.environment import Environment
    from corral.services.context import Context
    from corral.services.holdings import Database

MODES = ("schema", "database", "file")

ACTIONS = ("create", "reset", "drop", "url", "list")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument("--db", choices=MODES, help="create: its kind, if none is configured")
    parser.add_argument("--all", action="store_true", help="list: everybody's")
    parser.add_argument("--yes", action="store_true", help="reset, drop: act without asking")


def run(arguments: Namespace) -> Answer:
    """Create, reset, drop, print the URL, or list."""
    if arguments.db is not None and arguments.action != "create":
        raise UsageError("--db has no meaning here", remedy="corral db create --db KIND")
    if arguments.yes and arguments.action not in {"reset", "drop"}:
        raise UsageError("--yes has no meaning here", remedy="corral db reset --yes")
    if arguments.all and arguments.action != "list":
        raise UsageError("--all has no meaning here", remedy="corral db list --all")
    act = {"create": _create, "reset": _reset, "drop": _drop, "url": _url, "list": _list}
    return act[arguments.action](arguments)


def _create(arguments: Namespace) -> Answer:
    from corral.config import with_flags

    context = context_of(arguments)
    settings = with_flags(context.settings, isolation=arguments.db)
    settings = databases.settled(settings, databases.existing(context))
    if settings.database.isolation == "none":
        raise ConfigurationError(
            "no kind of database is configured",
            remedy='give --db file, or set [database] isolation = "file"',
            resource="database.isolation",
        )
    if settings.database.isolation == "container":
        raise UsageError(
            "a database container is a service of the compose project",
            remedy="run: corral up --db container, then docker compose up -d",
        )
    context = context._replace(settings=settings)
    databases.check(settings)
    seed = _seed(context)
    environment = environments.register(context)
    acting = owners.ensure_acting(context, environment)
    with context.registry.write() as conn:
        claimant = Claimant(environment.id, None, acting.owner)
        database = databases.take(conn, context, environment, claimant, settings)
    if database is None:
        raise AssertionError("a kind was asked for")
    made, words = databases.provision(context, environment, database, seed)
    return _answer(environment, database, "created" if made else "unchanged", words)


def _seed(context: Context) -> str:
    from corral.services.places import locate

    if context.settings.database.isolation != "file":
        return ""
    return databases.seed_file(context, context.settings, locate(context.directory).main)


def _reset(arguments: Namespace) -> Answer:
    context = context_of(arguments)
    environment = environments.require(context)
    database = databases.require(context, environment)
    seed = databases.seed_file(context, context.settings, environment.place.main)
    what = f"its data goes, and it is made anew {f'from {seed}' if seed else 'empty'}"
    if not _approved(arguments, database, environment, what):
        return _nothing_done(environment, database)
    databases.reset(context, environment, database, seed)
    return _answer(environment, database, "reset")


def _drop(arguments: Namespace) -> Answer:
    context = context_of(arguments)
    environment = environments.require(context)
    database = databases.require(context, environment)
    if not _approved(arguments, database, environment, "it and its data go"):
        return _nothing_done(environment, database)
    there = databases.drop(context, environment, database)
    return _answer(environment, database, "dropped" if there else "already_gone")


def _approved(
    arguments: Namespace, database: Database, environment: Environment, what: str
) -> bool:
    words = f"{arguments.action} of the {database.isolation} {database.name} of "
    return approved(f"{words}{environment.place.path}: {what}", arguments)


def _nothing_done(environment: Environment, database: Database) -> Answer:
    return _answer(environment, database, "unchanged", "nothing was done")


def _url(arguments: Namespace) -> Answer:
    context = context_of(arguments)
    environment = environments.require(context)
    database = databases.require(context, environment)
    shown = database.url or database.name
    return Answer(_data(environment, database), lambda: f"{shown}\n")


def _list(arguments: Namespace) -> Answer:
    context = context_of(arguments)
    environment = environments.find(context)
    rows = [
        {"environment": owner, **database._asdict(), "url": database.url or None}
        for owner, database in databases.listed(context)
        if arguments.all or (environment is not None and owner == environment.id)
    ]

    def text() -> str:
        cells = [
            (r["isolation"], r["name"], without_password(r["url"] or "-"), r["environment"])
            for r in rows
        ]
        return columns(cells, ("KIND", "NAME", "URL", "ENVIRONMENT")) or "no databases\n"

    return Answer({"databases": rows}, text)


def _answer(environment: Environment, database: Database, result: str, words: str = "") -> Answer:
    found = {**_data(environment, database), "result": result}
    said = words or f"{database.isolation} {database.name}: {result}"
    return Answer(found, lambda: "", words=(said,))


def _data(environment: Environment, database: Database) -> dict[str, Any]:
    return {
        "environment": environment.id,
        "database": {**database._asdict(), "url": database.url or None},
    }
