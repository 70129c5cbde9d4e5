"""The registry's tables, and how an older registry becomes a newer one.

Changes are additive: a step adds tables, indexes, or columns with defaults, and nothing that an
older corral reads ever changes its meaning. So corrals of different versions share one registry;
only where that is not possible does a step raise `min_reader`, and older ones refuse.

The version is SQLite's `user_version`, which costs no query of a table; `min_reader` stands in
the table `meta`.
"""

from __future__ import annotations

from corral.errors import RegistryError, RegistryTooNewError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

_FIRST = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE environment (
        id TEXT PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, admin TEXT NOT NULL,
        common TEXT NOT NULL, main TEXT NOT NULL, repository TEXT NOT NULL,
        worktree TEXT NOT NULL, is_main INTEGER NOT NULL, device INTEGER NOT NULL,
        inode INTEGER NOT NULL, nonce TEXT NOT NULL, namespace TEXT NOT NULL,
        created_at REAL NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE owner (
        id TEXT PRIMARY KEY, implicit_of TEXT UNIQUE, parent TEXT,
        created_at REAL NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE alias (
        session TEXT PRIMARY KEY, owner TEXT NOT NULL, agent TEXT NOT NULL,
        created_at REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX alias_owner ON alias (owner)",
    """CREATE TABLE epoch (
        id INTEGER PRIMARY KEY AUTOINCREMENT, owner TEXT NOT NULL, environment TEXT,
        agent TEXT NOT NULL, opened_at REAL NOT NULL, boot_id TEXT NOT NULL, anchor TEXT,
        released_at REAL, released_why TEXT NOT NULL DEFAULT '', "end" TEXT)""",
    "CREATE INDEX epoch_owner ON epoch (owner)",
    """CREATE TABLE claim (
        kind TEXT NOT NULL, scope TEXT NOT NULL, value TEXT NOT NULL, name TEXT NOT NULL,
        environment TEXT, holder TEXT, worker TEXT NOT NULL, created_at REAL NOT NULL,
        detail TEXT NOT NULL DEFAULT '', PRIMARY KEY (kind, scope, value)) WITHOUT ROWID""",
    "CREATE INDEX claim_environment ON claim (environment) WHERE environment IS NOT NULL",
    "CREATE INDEX claim_holder ON claim (holder) WHERE holder IS NOT NULL",
    """CREATE TABLE resource (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, backend TEXT NOT NULL, role TEXT NOT NULL,
        name TEXT NOT NULL, owner TEXT NOT NULL, session TEXT, environment TEXT,
        state TEXT NOT NULL, identity TEXT NOT NULL, creator TEXT, created_at REAL NOT NULL,
        detail TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID""",
    "CREATE INDEX resource_owner ON resource (owner)",
    "CREATE INDEX resource_environment ON resource (environment)",
    """CREATE TABLE keep (
        kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID""",
    """CREATE TABLE journal (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, action TEXT NOT NULL,
        kind TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL, owner TEXT,
        environment TEXT, "trigger" TEXT NOT NULL, proof TEXT NOT NULL, detail TEXT NOT NULL)""",
    """CREATE TABLE output (
        environment TEXT NOT NULL, path TEXT NOT NULL, mode TEXT NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (environment, path)) WITHOUT ROWID""",
    """CREATE TABLE trust (
        path TEXT PRIMARY KEY, digest TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID""",
    "CREATE TABLE spooled (id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE fence (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
)


class Schema(NamedTuple):
    """What one version of corral knows: step `i` makes version `i + 1` of version `i`.

    `min_reader`: the lowest version that may use a registry of this schema.
    """

    steps: tuple[tuple[str, ...], ...]
    min_reader: int

    @property
    def version(self) -> int:
        """The version that all steps together make."""
        return len(self.steps)


CURRENT = Schema((_FIRST,), 1)
SCHEMA_VERSION = CURRENT.version
MIN_READER = CURRENT.min_reader


def version_of(conn: Connection, schema: Schema = CURRENT) -> int:
    """The version of the open registry, 0 for an empty file.

    Raises RegistryTooNewError where only a newer corral may use it, RegistryError where it is no
    registry of corral's.
    """
    version = int(conn.execute("PRAGMA user_version").fetchone()[0])
    if version == 0 and conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise RegistryError(
            "the file registry.sqlite3 of the state directory is another program's database",
            remedy="move it aside, or set CORRAL_STATE_DIR to a directory of corral's own",
        )
    if version > schema.version:
        _refuse_if_too_new(conn, version, schema.version)
    return version


def _refuse_if_too_new(conn: Connection, version: int, known: int) -> None:
    row = conn.execute("SELECT value FROM meta WHERE key = 'min_reader'").fetchone()
    text = str(row[0]) if row is not None else ""
    least = int(text) if text.isdecimal() else version  # not understood: newer than can be told
    if least > known:
        raise RegistryTooNewError(
            f"the registry was written by a newer corral: it is of version {version}, asks for "
            f"version {least} at least, and this corral knows version {known}",
            remedy="upgrade this corral; the registry was not touched",
        )


def upgrade(conn: Connection, version: int, schema: Schema = CURRENT) -> None:
    """Take the steps that are missing after `version`, within the transaction that is open."""
    if version >= schema.version:
        return
    for step in schema.steps[version:]:
        for statement in step:
            conn.execute(statement)
    conn.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('min_reader', ?)",
        (str(schema.min_reader),),
    )
    conn.execute(f"PRAGMA user_version = {schema.version:d}")
