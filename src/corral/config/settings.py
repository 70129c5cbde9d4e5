"""The settings of one project, frozen; every field says which key it comes from."""

from __future__ import annotations

from corral.decide.ports import Pool
from corral.model.tuples import NamedTuple


class PortWish(NamedTuple):
    """One port that a project asks for.

    `preferred`: the port in the main checkout, or None. `env`: the variable that carries it, or
    None for `<NAME>_PORT`. `handoff`: hold, fd or release. `protocol`: tcp or udp.
    """

    name: str
    preferred: int | None = None
    env: str | None = None
    handoff: str = "hold"
    protocol: str = "tcp"

    @property
    def variable(self) -> str:
        """The name of the variable that carries this port."""
        return self.env or port_variable(self.name)


class DatabaseSettings(NamedTuple):
    """`[database]`: `isolation` is none, schema, database, file or container; "" is unset.

    `url` names the server to use, `seed` the SQLite file to clone, `migrate` and `inputs` the
    template's command and the patterns of the files that it depends on.
    """

    isolation: str = "none"
    url: str = ""
    seed: str = ""
    migrate: str = ""
    inputs: tuple[str, ...] = ()


class CommandSource(NamedTuple):
    """The project's files that bring commands: their names, and SHA-256 over what they say."""

    files: tuple[str, ...]
    digest: str


class Settings(NamedTuple):
    """Every setting that is in force for one directory.

    `root` is the project's directory (the worktree's top, or the directory itself outside git).
    `sources` holds (key, source) for each key that does not have its default; a source is a
    flag, the name of a variable or the path of a file. `commands_from` is set when a file of the
    project brings commands, which run only once exactly that content was trusted.
    """

    root: str = ""
    namespace: str = "corral"
    pool: Pool = Pool(22000, 31999)
    ports: tuple[PortWish, ...] = ()
    database: DatabaseSettings = DatabaseSettings()
    compose_files: tuple[str, ...] | None = None
    vars: tuple[tuple[str, str], ...] = ()
    link: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    after_up: tuple[str, ...] = ()
    dotenv: str = ".env.local"
    reap: str = "auto"
    grace: float = 30.0
    protect: frozenset[str] = frozenset()
    sources: tuple[tuple[str, str], ...] = ()
    commands_from: CommandSource | None = None

    def port(self, name: str) -> PortWish:
        """The wish for the port of that name; a plain one if no configuration names it."""
        for wish in self.ports:
            if wish.name == name:
                return wish
        return PortWish(name)


def port_variable(name: str) -> str:
    """The variable of a port without a name of its own: `web` is WEB_PORT, `my-api` MY_API_PORT."""
    return f"{name.upper().replace('-', '_')}_PORT"
