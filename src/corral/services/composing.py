"""The project's compose files: which they are, what they publish, and how compose is told.

Plain `docker compose` in a worktree uses the environment's own project and override. Compose reads
`COMPOSE_FILE` of the project's `.env` only when it is called from that directory, while it finds
an override of the usual name from subdirectories too. So the override lies beside the base file
under that name where the user has none, and below the state directory else.
"""

from __future__ import annotations

import os

from corral.config.checks import WrongValueError, name
from corral.config.settings import PortWish
from corral.decide.project_places import read_directories, write_directories
from corral.errors import ConfigurationError, CorralError
from corral.kernel import paths
from corral.model.environment import ClaimKind
from corral.model.tuples import NamedTuple
from corral.store import claims, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Connection

    from corral.config import Settings
    from corral.model.environment import Environment
    from corral.render.compose_base import Base
    from corral.services.context import Context
    from corral.services.holdings import Holdings

OVERRIDE_NAME = "compose.override.yaml"
PROJECT_FILE = ".env"
_MARK = "# corral's own: made for environment "
_SEPARATORS = ":;|,"
_SETTINGS = ("COMPOSE_FILE", "COMPOSE_PROJECT_NAME")
Key = tuple[str, int, str]


class Project(NamedTuple):
    """The compose files of a project, and the names of the ports that they publish.

    `override`: where corral's own goes, "" for the environment's directory below the state
    directory. `names`: the claim's name of every (service, container port, protocol).
    """

    base: Base
    override: str
    names: tuple[tuple[Key, str], ...]


def read_project(context: Context, root: str) -> Project | None:
    """What the compose files at `root` say, or None where there are none.

    Raises ConfigurationError for a file that is not there or is no compose file.
    """
    files, usual = _files(context.settings, root)
    if not files:
        return None
    from corral.render.compose_base import read_base

    base = read_base(files, context.environ)
    alone = usual and len(files) == 1 and not _others_override(root)
    override = os.path.join(root, OVERRIDE_NAME) if alone else ""
    return Project(base, override, tuple(_names(base, context.settings.ports)))


def empty_project() -> Project:
    """A project without files of the user's: only a database container is in it."""
    from corral.render.compose_base import Base as ComposeBase

    return Project(ComposeBase((), (), (), (), (), ()), "", ())


def _files(settings: Settings, root: str) -> tuple[tuple[str, ...], bool]:
    """The absolute paths of the base files, and whether compose finds them by itself."""
    if settings.compose_files is not None:
        return _present(root, settings.compose_files, "compose.files"), False
    from corral.render.compose_read import default_files

    named = _named_by_user(root)
    if named:
        return _present(root, named, f"COMPOSE_FILE in {PROJECT_FILE}"), False
    return tuple(f for f in default_files(root) if not is_corrals(f)), True


def _present(root: str, files: Iterable[str], where: str) -> tuple[str, ...]:
    found = []
    for file in files:
        path = os.path.normpath(os.path.join(root, file))
        if is_corrals(path):
            continue
        if not os.path.isfile(path):
            raise ConfigurationError(
                f"{where}: {file} is not in {root}", remedy="correct the name", resource=path
            )
        found.append(path)
    return tuple(found)


def _named_by_user(root: str) -> list[str]:
    """The files that the user's own lines of `.env` name."""
    from corral.render.block import remove_block
    from corral.render.interpolation import dotenv_pairs

    try:
        content = paths.read_regular(os.path.join(root, PROJECT_FILE))
        own = dict(dotenv_pairs((remove_block(content) or b"").decode("utf-8", "replace")))
    except (FileNotFoundError, CorralError):
        # None, a symlink or a torn block: nothing there that could be the user's list.
        return []
    separator = own.get("COMPOSE_PATH_SEPARATOR") or ":"
    return [file for file in own.get("COMPOSE_FILE", "").split(separator) if file]


def _others_override(root: str) -> bool:
    """Whether the user has a file under a name that compose would take for an override."""
    from corral.render.compose_read import DEFAULT_OVERRIDES

    places = (os.path.join(root, each) for each in DEFAULT_OVERRIDES)
    return any(os.path.lexists(path) and not is_corrals(path) for path in places)


def is_corrals(path: str) -> bool:
    """Whether corral wrote the override, for whichever environment, and nobody changed it since."""
    try:
        content = paths.read_regular(path)
    except (FileNotFoundError, NotADirectoryError, CorralError):
        # Nothing, or nothing of which corral could be the author.
        return False
    line, _, rest = content.partition(b"\n")
    return line.startswith(_MARK.encode()) and line == _first_line(_environment(line), rest)


def _environment(line: bytes) -> str:
    return line.decode("utf-8", "replace").removeprefix(_MARK).partition(" ")[0]


def _first_line(environment: str, rest: bytes) -> bytes:
    from hashlib import sha256

    return f"{_MARK}{environment} sha256={sha256(rest).hexdigest()[:16]}".encode()


def _names(base: Base, wishes: Sequence[PortWish]) -> Iterable[tuple[Key, str]]:
    """The name of each published port: that of the wish that means it, else the service's."""
    from corral.render.compose_base import published_ports

    taken: set[str] = set()
    for port in published_ports(base):
        own = _sound(port.name, port.target)
        variable = PortWish(own).variable
        means = [w for w in wishes if variable in {w.variable, PortWish(w.name).variable}]
        means += [w for w in wishes if w.preferred is not None and w.preferred == port.preferred]
        free = [w.name for w in means if w.name not in taken]
        chosen = free[0] if free else own
        while chosen in taken:
            chosen = f"{own}-{port.target}-{len(taken)}"
        taken.add(chosen)
        yield port.key, chosen


def _sound(service: str, target: int) -> str:
    try:
        return name(service.replace(".", "-"))
    except WrongValueError:
        return f"port-{target}"


def wishes(project: Project | None) -> tuple[PortWish, ...]:
    """A wish for every published port, named as the project names it."""
    if project is None:
        return ()
    from corral.render.compose_base import published_ports

    names = dict(project.names)
    return tuple(
        PortWish(
            names[port.key], port.preferred, protocol="udp" if port.protocol == "udp" else "tcp"
        )
        for port in published_ports(project.base)
    )


def override_path(context: Context, environment: Environment, project: Project) -> str:
    """Where the override is kept."""
    own = statedir.environment_dir(context.state_dir, environment.id)
    return project.override or os.path.join(own, OVERRIDE_NAME)


def override_text(
    context: Context, environment: Environment, held: Holdings, project: Project
) -> tuple[bytes, list[str]]:
    """The override, and words on what cannot be isolated. Raises InvalidValueError."""
    from corral.render.compose_override import override_for
    from corral.services.companion import companion_of

    numbers = {key: port.number for key, own in project.names if (port := held.port(own))}
    result = override_for(
        project.base,
        project=held.name("compose") or "",
        environment_id=environment.id,
        ports=numbers,
        variables=_inside(context.settings),
        address=held.address or "127.0.0.1",
        namespace=environment.namespace,
        database=companion_of(context, environment, held, project),
    )
    body = result.text.encode()
    words = [
        f"compose: {'.'.join(part for part in (each.service, each.key) if part)}: {each.message}"
        for each in result.warnings
    ]
    return _first_line(environment.id, body) + b"\n" + body, words


def _inside(settings: Settings) -> tuple[tuple[str, str], ...]:
    """The variables that mean the same in a container: those that name nothing of the host."""
    return tuple(
        (each, text.replace("$${", "${")) for each, text in settings.vars if not _refers(text)
    )


def _refers(text: str) -> bool:
    return "${" in text.replace("$${", "")


def project_variables(
    context: Context, environment: Environment, project: Project, project_name: str
) -> tuple[tuple[str, str], ...]:
    """The lines of `.env` that make compose use the environment's own project and override.

    Paths are relative where they can be: a copied `.env` must not lead into the first worktree.
    """
    root = environment.place.path
    files = [*project.base.files, override_path(context, environment, project)]
    shown = [os.path.relpath(f, root) if f.startswith(f"{root}/") else f for f in files]
    separator = next((c for c in _SEPARATORS if not any(c in f for f in shown)), ":")
    pairs = [("COMPOSE_PROJECT_NAME", project_name), ("COMPOSE_FILE", separator.join(shown))]
    if separator != ":":
        pairs.append(("COMPOSE_PATH_SEPARATOR", separator))
    return tuple(pairs)


def words(context: Context, project: Project, root: str) -> list[str]:
    """What a person should know about how far plain `docker compose` is isolated."""
    found = [
        f"{variable} is exported in this shell and wins over {PROJECT_FILE}: unset it"
        for variable in _SETTINGS
        if variable in context.environ
    ]
    if not project.override and project.base.files:
        found.append(
            f"compose reads corral's override only when it is called in {root}, not below it"
        )
    return found


def remember_places(conn: Connection, environment: Environment, project: Project) -> None:
    """Note in the claim of the project's name from where compose starts it, now and before."""
    own = claims.of_environment(conn, environment.id)
    claim = next((c for c in own if c.kind is ClaimKind.NAME and c.scope == "compose"), None)
    if claim is None:
        return
    known = read_directories(claim.detail)
    files = project.base.files[:1]
    now = {environment.place.path, *(os.path.realpath(os.path.dirname(file)) for file in files)}
    if not now <= known:
        claims.describe(conn, claim, write_directories(known | now))
