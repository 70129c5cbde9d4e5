"""What a start needs before anything is written down: whose it is, its ports, its command."""

from __future__ import annotations

import os

from corral.config.checks import WrongValueError
from corral.config.checks import name as check_port_name
from corral.decide.placeholders import Handed, fill
from corral.errors import InvalidValueError, UsageError
from corral.kernel import spawn
from corral.model.tuples import NamedTuple
from corral.services import environments, owners
from corral.services.holdings import holdings_of
from corral.services.variables import LOOPBACK, variables
from corral.store import claims
from corral.store import environments as environments_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.model.environment import Environment
    from corral.services.claiming import PortGiven
    from corral.services.context import Acting, Context
    from corral.services.holdings import Holdings, Port

OWNER_VARIABLE = "CORRAL_OWNER"
HANDOFFS = ("hold", "fd", "release")
_NAME_LIMIT = 64
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Request(NamedTuple):
    """What was asked for. `ports`: names; `handoff`: None takes each port's own setting.

    `ready_seconds`: wait that long for the ports, None does not wait. `death_signal`: sent to a
    command in the foreground when corral dies, 0 for none.
    """

    argv: tuple[str, ...]
    name: str = ""
    ports: tuple[str, ...] = ()
    handoff: str | None = None
    detach: bool = False
    ready_seconds: float | None = None
    death_signal: int = 0


class Given(NamedTuple):
    """A port that the command is given, and how (`hold`, `fd` or `release`; UDP: `release`)."""

    name: str
    number: int
    protocol: str
    handoff: str


class Launch(NamedTuple):
    """Everything that a start needs; nothing is started, held or recorded yet.

    `environ`: the command's variables. `host`: the address that is handed out. `also_ours(port)`
    tells listeners of this environment that are no processes of the tree: its containers'.
    `claimed`: what this start claimed. `words`: what a person should know of it.
    """

    request: Request
    environment: Environment
    acting: Acting
    host: str
    ports: tuple[Given, ...]
    environ: dict[str, str]
    also_ours: Callable[[int], bool] | None = None
    claimed: tuple[PortGiven, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def handed(self) -> tuple[Given, ...]:
        """The ports whose sockets the command inherits, in the order of their descriptors."""
        return tuple(port for port in self.ports if port.handoff == "fd")

    @property
    def argv(self) -> tuple[str, ...]:
        """The command's words with the placeholders replaced."""
        places = {port.name: spawn.FIRST_HANDED + n for n, port in enumerate(self.handed)}
        handed = tuple(Handed(p.name, p.number, places.get(p.name)) for p in self.ports)
        return fill(self.request.argv, self.host, handed)

    @property
    def url(self) -> str | None:
        """Where the first port answers, once it does."""
        return f"http://{self.host}:{self.ports[0].number}" if self.ports else None


def check(request: Request) -> None:
    """Raises UsageError or InvalidValueError for what has no meaning; nothing was done then."""
    if not request.argv or not request.argv[0]:
        raise UsageError("no command is given", remedy="write it after --: corral run -- CMD...")
    if request.name:
        check_name(request.name)
    if request.handoff is not None and request.handoff not in HANDOFFS:
        raise UsageError(
            f"--handoff {request.handoff}: no such way", remedy=f"choose: {', '.join(HANDOFFS)}"
        )
    for port in request.ports:
        try:
            check_port_name(port)
        except WrongValueError as error:
            word, equals, number = port.partition("=")
            remedy = "use letters, digits, '-' and '_', a letter first: corral finds the number"
            if equals:
                remedy = f"corral port claim {port} asks for {number}; then run with --port {word}"
            raise UsageError(f"--port {port!r} cannot name a port", remedy=remedy) from error
    if len(set(request.ports)) != len(request.ports):
        raise UsageError("a port is named twice", remedy="give each --port once")


def check_name(name: str) -> str:
    """The name of a service, if it can be one: it also names the log file."""
    sound = 0 < len(name) <= _NAME_LIMIT and set(name) <= _NAME_LETTERS
    if not sound or name[0] in ".-":
        raise InvalidValueError(
            f"the name {name!r} cannot be used for a service",
            remedy=f"use up to {_NAME_LIMIT} letters, digits, '_', '-' and '.', a letter first",
        )
    return name


def generated_name(argv: Sequence[str]) -> str:
    """A name for a detached service that was given none: its program, and something random."""
    from corral.decide.naming import slug

    random = os.urandom(3).hex()
    program = slug(argv[0].rsplit("/", 1)[-1], "-")[: _NAME_LIMIT // 2]
    return f"{program or 'service'}-{random}"


def prepare(context: Context, request: Request) -> Launch:
    """Find out whose it is, claim the ports that are asked for, put the variables together.

    The ports that the configuration names are claimed as well, as `up` would: the command's
    variables must not depend on whether somebody called it.

    Raises the errors of `check`, HeldError when a port cannot be had, ConfigurationError.
    """
    check(request)
    request = request._replace(ports=request.ports or _implied(context, request))
    if request.ready_seconds is not None and not request.ports:
        raise UsageError("--wait-ready needs a port to wait for", remedy="give --port NAME")
    environment = environments.register(context)
    acting = owners.ensure_acting(context, environment)
    held, claimed = _holdings(context, environment, acting, request.ports)
    ports = tuple(_given(context, request, held.port(name)) for name in request.ports)
    environ = {**context.environ, **dict(variables(environment, held, context.settings))}
    environ[OWNER_VARIABLE] = acting.owner
    if ports:
        environ["PORT"] = str(ports[0].number)
    words = (*(each.words for each in claimed if each.words), *_missing(context, held))
    host = held.address or LOOPBACK
    return Launch(request, environment, acting, host, ports, environ, claimed=claimed, words=words)


def _missing(context: Context, held: Holdings) -> tuple[str, ...]:
    """Words on what is configured and only `up` can make: a database."""
    isolation = context.settings.database.isolation
    if isolation == "none" or held.database is not None:
        return ()
    words = (
        f"this environment has no database yet, though {isolation} is configured, so the command "
        "gets no DATABASE_URL: corral up makes it"
    )
    return (words,)


def give_back(context: Context, launch: Launch) -> None:
    """Release what was claimed for a command that was never started, unless others use it now."""
    from corral.model.environment import ClaimKind
    from corral.services.claiming import release
    from corral.services.running import details
    from corral.store import records

    asked = set(launch.request.ports)
    with context.registry.write() as conn:
        known = records.of_environment(conn, launch.environment.id)
        used = {name for record in known for name in details(record).get("ports", ())}
        mine = {(each.name, str(each.number)) for each in launch.claimed}
        for claim in claims.of_environment(conn, launch.environment.id):
            fresh = claim.kind is ClaimKind.PORT and (claim.name, claim.value) in mine
            if fresh and claim.name in asked - used:
                release(conn, claim)


def _implied(context: Context, request: Request) -> tuple[str, ...]:
    """The port of a service's own name; where readiness is waited for, else the only port."""
    environment = environments.find(context)
    names = dict.fromkeys(wish.name for wish in context.settings.ports)
    if environment is not None:
        with context.registry.read() as conn:
            held = holdings_of(claims.of_environment(conn, environment.id))
        names |= dict.fromkeys(port.name for port in held.ports)
    if request.name in names:
        return (request.name,)
    return tuple(names) if request.ready_seconds is not None and len(names) == 1 else ()


def _holdings(
    context: Context, environment: Environment, acting: Acting, names: Sequence[str]
) -> tuple[Holdings, tuple[PortGiven, ...]]:
    """What the environment has, with the ports of these names and of the configuration."""
    with context.registry.read() as conn:
        held = holdings_of(claims.of_environment(conn, environment.id))
    wanted = dict.fromkeys((*names, *(wish.name for wish in context.settings.ports)))
    missing = [name for name in wanted if held.port(name) is None]
    if not missing:
        return held, ()
    from corral.services.claiming import Claimant, PortAsked, take_ports

    place, settings = environment.place, context.settings
    honoured = place.is_main or held.address is not None
    asked = [PortAsked(settings.port(name), honoured) for name in missing]
    with context.registry.write() as conn:
        environments_table.require(conn, environment.id)
        claimant = Claimant(environment.id, None, acting.owner)
        who = (place.repository, place.worktree)
        given = take_ports(conn, claimant, asked, settings, who, held.address)
        held = holdings_of(claims.of_environment(conn, environment.id))
    return held, tuple(each for each in given if each.new)


def _given(context: Context, request: Request, port: Port | None) -> Given:
    if port is None:
        raise AssertionError("a port that was claimed is held")
    handoff = request.handoff or context.settings.port(port.name).handoff
    if port.protocol != "tcp":
        handoff = "release"  # the last one to bind a UDP port takes what arrives: nothing to hold
    return Given(port.name, port.number, port.protocol, handoff)
