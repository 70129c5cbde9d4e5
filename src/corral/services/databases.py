"""An environment's own database: claimed by name, and made, reset and dropped where it is a file.

A file lies in the environment's directory below the state directory, so that it is found by its
place and the directory's nonce.
"""

from __future__ import annotations

import os
import time
from contextlib import closing

from corral.decide import naming
from corral.decide.database_urls import database_url, schema_url, sqlite_url
from corral.errors import ConfigurationError, HeldError, NotFoundError, RefusedError
from corral.kernel import paths
from corral.model.environment import ClaimKind
from corral.services import environments
from corral.services.claiming import names_for
from corral.services.holdings import Database
from corral.store import claims, statedir
from corral.store import environments as environments_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.config import Settings
    from corral.model.environment import Claim, Environment
    from corral.services.claiming import Claimant
    from corral.services.context import Context

FILE_NAME = "database.sqlite3"
_SEED_SECONDS = 30.0  # how long a seed that somebody locks is waited for
_LATER = {
    "schema": (
        "the schema {name} is claimed, but not created: corral makes none on a server yet. "
        "CREATE SCHEMA {name} makes it"
    ),
    "database": (
        "the database {name} is claimed, but not created: corral makes none on a server yet. "
        "createdb {name} makes it"
    ),
    "container": "the database is in the container {name}: docker compose up -d starts it",
}


def own_directory(context: Context, environment: Environment) -> str:
    """The environment's directory below the state directory, made with its nonce if need be."""
    statedir.ensure(context.state_dir)
    parent = statedir.environments_dir(context.state_dir)
    if not os.path.isdir(parent):
        os.makedirs(parent, mode=0o700, exist_ok=True)
    path = statedir.environment_dir(context.state_dir, environment.id)
    if paths.read_nonce(path) != environment.nonce:
        # two that make it at once would be in each other's way: one after the other
        with context.registry.write(durable=False) as conn:
            environments_table.require(conn, environment.id)
            paths.make_marked_directory(path, environment.nonce)
    return path


def check(settings: Settings) -> None:
    """Raise ConfigurationError when the wanted isolation lacks what it needs."""
    database = settings.database
    if database.isolation in {"schema", "database"}:
        if not database.url:
            raise ConfigurationError(
                f'isolation "{database.isolation}" needs a server: database.url is not set',
                remedy='set [database] url = "postgresql://..." or use isolation "file"',
                resource="database.url",
            )
        schema_url(database.url, "x")


def settled(settings: Settings, known: Database | None) -> Settings:
    """The settings with the kind of database that the environment has already.

    Raises RefusedError when another kind is asked for.
    """
    if known is None:
        return settings
    wanted = settings.database.isolation
    if wanted not in {"none", known.isolation}:
        raise RefusedError(
            f"this environment has a database already, of the kind {known.isolation!r}",
            remedy=f"corral db drop gives it up; then ask for {wanted!r} again",
            resource=known.name,
        )
    return settings._replace(database=settings.database._replace(isolation=known.isolation))


def is_missing(known: Database | None) -> bool:
    """Whether the database's file is still to be made."""
    return known is None or not os.path.lexists(known.name)


def planned(
    context: Context, environment: Environment, settings: Settings, name: str = ""
) -> Database | None:
    """The database that the settings ask for, under `name` where it is not a file.

    None for a container, whose name and URL follow from other claims.
    """
    isolation = settings.database.isolation
    if isolation in {"none", "container"}:
        return None
    if isolation == "file":
        directory = statedir.environment_dir(context.state_dir, environment.id)
        path = os.path.join(directory, FILE_NAME)
        return Database("file", path, sqlite_url(path))
    make = {"schema": schema_url, "database": database_url}[isolation]
    return Database(isolation, name, make(settings.database.url, name))


def claimed(conn: Connection, environment: str) -> Claim | None:
    """The claim of the environment's database, or None."""
    own = claims.of_environment(conn, environment)
    return next((claim for claim in own if claim.kind is ClaimKind.DATABASE), None)


def take(
    conn: Connection,
    context: Context,
    environment: Environment,
    claimant: Claimant,
    settings: Settings,
    container: Database | None = None,
) -> Database | None:
    """Claim the database that the settings ask for; what there is already stays.

    `container`: the one to claim where the isolation is "container". Raises RefusedError when the
    environment has one of another kind.
    """
    known = claimed(conn, environment.id)
    if known is not None:
        database = Database(known.scope, known.value, known.detail)
        settled(settings, database)
        return database
    for name in names_for(environment, naming.POSTGRES):
        wanted = container or planned(context, environment, settings, name)
        if wanted is None:
            return None
        claim = claimant.claim(
            ClaimKind.DATABASE, wanted.isolation, wanted.name, "database", wanted.url
        )
        if claims.take(conn, claim):
            return wanted
    raise HeldError("no name is left for the database", remedy="see: corral db list")


def seed_file(context: Context, settings: Settings, main: str) -> str:
    """The real path of the seed, "" if none is configured; ConfigurationError if it is not there.

    A relative seed is looked for in the worktree, then in the main checkout.
    """
    seed = os.path.expanduser(settings.database.seed)
    if not seed:
        return ""
    for place in (settings.root, main):
        path = os.path.join(place, seed)
        if os.path.isfile(path):
            return os.path.realpath(path)
    raise ConfigurationError(
        f"database.seed: {settings.database.seed} is neither in {settings.root} nor in {main}",
        remedy="make it, or remove database.seed for an empty database",
        resource=context.settings.root,
    )


def provision(
    context: Context, environment: Environment, database: Database, seed: str
) -> tuple[bool, str]:
    """Make the database if it is not there: (whether it was made, words on what is open)."""
    if database.isolation != "file":
        words = _LATER.get(database.isolation, "{name} is a database of a kind not known here")
        return False, words.format(name=database.name)
    own_directory(context, environment)
    if os.path.lexists(database.name):
        return False, ""
    _make_file(database.name, seed)
    return True, ""


def _make_file(path: str, seed: str) -> None:
    """Make an SQLite file, empty or cloned; it shows up complete or not at all."""
    import sqlite3

    temporary = f"{path}.new-{os.getpid()}-{os.urandom(4).hex()}"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(sqlite3.connect(temporary)) as target:
            if seed:
                _clone(seed, target)
            else:
                # a file of no bytes is an SQLite database, but few tools know that
                target.execute("VACUUM")
            target.execute("PRAGMA journal_mode = DELETE")
        os.link(temporary, path)
    except FileExistsError:
        # Another `up` of this environment made it in the meantime.
        return
    except sqlite3.DatabaseError as error:
        raise ConfigurationError(
            f"database.seed: {seed or path}: {error}",
            remedy="name a readable SQLite file",
            resource=seed or path,
        ) from error
    finally:
        os.unlink(temporary)


def _clone(seed: str, target: Connection) -> None:
    """Copy a live database with what its write-ahead log holds, reading only."""
    import sqlite3
    from urllib.parse import quote

    deadline = time.monotonic() + _SEED_SECONDS

    def check(_status: int, _remaining: int, _total: int) -> None:
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"database.seed: {seed} was locked for {_SEED_SECONDS:g} s",
                remedy="end what is writing to it, then try again",
                resource=seed,
            )

    # Without a log beside it nothing can be written, and only who may write takes away again the
    # empty log that SQLite makes to read a database in WAL mode.
    live = any(os.path.lexists(seed + ending) for ending in ("-wal", "-journal"))
    uri = f"file:{quote(seed)}?mode={'ro' if live else 'rw'}"
    with closing(sqlite3.connect(uri, uri=True)) as source:
        source.backup(target, progress=check)


def reset(context: Context, environment: Environment, database: Database, seed: str) -> None:
    """Make the database anew, empty or from its seed."""
    _require_file(database)
    own_directory(context, environment)
    made = f"{database.name}.reset"
    if os.path.lexists(made):
        os.unlink(made)
    _make_file(made, seed)
    _remove_beside(database.name)
    os.replace(made, database.name)


def drop(context: Context, environment: Environment, database: Database) -> bool:
    """Remove the database and give its claim back; whether there was anything to remove."""
    if database.isolation == "file":
        directory = statedir.environment_dir(context.state_dir, environment.id)
        if os.path.isdir(directory) and paths.read_nonce(directory) != environment.nonce:
            raise RefusedError(
                f"{directory} does not bear this environment's nonce, so it is left alone",
                remedy="see: corral status --explain",
                resource=directory,
            )
        there = os.path.lexists(database.name)
        _remove_beside(database.name)
        if there:
            os.unlink(database.name)
    else:
        there = False
    with context.registry.write() as conn:
        claim = claimed(conn, environment.id)
        if claim is not None:
            claims.release(conn, claim.kind, claim.scope, claim.value, environment=environment.id)
    return there


def _remove_beside(path: str) -> None:
    """Remove the journal files of an SQLite database; they would be played into another one."""
    for ending in ("-wal", "-shm", "-journal"):
        try:
            os.unlink(path + ending)
        except FileNotFoundError:
            # Most databases have none.
            continue


def _require_file(database: Database) -> None:
    if database.isolation != "file":
        raise RefusedError(
            f"a database of the kind {database.isolation!r} is not reset by corral yet",
            remedy="make it anew with the server's own tools, as psql and createdb",
            resource=database.name,
        )


def existing(context: Context) -> Database | None:
    """The database of the environment of the context's directory, or None; writes nothing."""
    environment = environments.find(context)
    if environment is None:
        return None
    with context.registry.read() as conn:
        claim = claimed(conn, environment.id)
    return Database(claim.scope, claim.value, claim.detail) if claim is not None else None


def require(context: Context, environment: Environment) -> Database:
    """The environment's database. NotFoundError when it has none."""
    with context.registry.read() as conn:
        claim = claimed(conn, environment.id)
    if claim is None:
        raise NotFoundError(
            f"{environment.place.path} has no database",
            remedy="run: corral db create --db KIND, or corral up --db KIND",
            resource=environment.id,
        )
    return Database(claim.scope, claim.value, claim.detail)


def listed(context: Context) -> tuple[tuple[str, Database], ...]:
    """Every database that an environment has claimed, with the environment's id."""
    with context.registry.read() as conn:
        known, _ = claims.all_(conn)
    return tuple(
        (claim.environment or "", Database(claim.scope, claim.value, claim.detail))
        for claim in known
        if claim.kind is ClaimKind.DATABASE
    )
