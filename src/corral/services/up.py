"""`up`: claim what an environment wants, provision it, write its files. Idempotent.

Everything that can be wrong is found before anything is changed: the claims are one transaction,
and what they will lead to (variables, blocks) is rehearsed with stand-ins first.
"""

from __future__ import annotations

from corral.config import with_flags
from corral.config.checks import WrongValueError, name
from corral.decide.inferring import Guess
from corral.errors import RunError, UsageError
from corral.kernel import sockets
from corral.model.environment import Environment
from corral.model.tuples import NamedTuple
from corral.services import (
    companion,
    composing,
    databases,
    environments,
    inference,
    outputs,
    setup,
    trust,
    witnesses,
)
from corral.services.building import PATIENCE, alone
from corral.services.claiming import (
    Claimant,
    PortAsked,
    PortGiven,
    take_address,
    take_name,
    take_ports,
)
from corral.services.environment_view import describe
from corral.services.holdings import Holdings, Port, holdings_of
from corral.services.owners import ensure_acting
from corral.services.places import locate, no_project
from corral.services.repository import Repository
from corral.services.unplacing import BLOCK
from corral.services.variables import variables
from corral.services.wanting import wanted_files
from corral.store import claims
from corral.store import environments as environments_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from corral.config import PortWish, Settings
    from corral.services.composing import Project
    from corral.services.context import Acting, Context
    from corral.services.holdings import Database
    from corral.services.outputs import Placed
    from corral.services.repository import RunProgram
    from corral.services.trust import Brought

_STAND_IN = "env-000000000000"
_STAND_IN_ADDRESS = "127.0.0.2"


class Request(NamedTuple):
    """What the command line asks for on top of the configuration; `isolation` None asks nothing."""

    isolation: str | None = None
    ports: tuple[PortWish, ...] = ()
    address: bool = False


class Up(NamedTuple):
    """What `up` did. `environment` is the documented view; `words` are for a person.

    `inferred`: names of ports that no configuration names. `made`: the database was made now.
    `ran`: commands of `[setup]` that were run; `failure` says which one failed and `remedy` what
    to do, both "" if none.
    """

    environment: dict[str, Any]
    acting: Acting
    ports: tuple[PortGiven, ...]
    inferred: tuple[str, ...]
    files: tuple[Placed, ...]
    made: bool
    ran: tuple[str, ...]
    words: tuple[str, ...]
    failure: str = ""
    remedy: str = ""


class _Plan(NamedTuple):
    """What is wanted, after all checks."""

    settings: Settings
    asked: tuple[PortAsked, ...]
    inferred: tuple[str, ...]
    project: Project | None
    seed: str
    words: tuple[str, ...]


class _Built(NamedTuple):
    """What was made of the plan."""

    environment: Environment
    acting: Acting
    given: tuple[PortGiven, ...]
    placed: tuple[Placed, ...]
    made: bool
    variables: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


def up(
    context: Context,
    request: Request,
    run_program: RunProgram,
    ask: Callable[[Brought], bool] | None = None,
    *,
    patience: float = PATIENCE,
) -> Up:
    """Bring the environment of the context's directory up.

    `patience`: seconds to wait for another `up` or `down` of it.

    `ask` asks a person in a terminal whether commands may run; None where there is none. Raises
    UsageError, ConfigurationError and InvalidValueError for what is wrong, UntrustedError for
    commands that nobody trusted, HeldError when the pool is exhausted or another one is at work for
    too long: nothing was changed then.
    """
    known = environments.find(context)
    before = _holdings(context, known)
    plan = _planned(context, request, before)
    context = context._replace(settings=plan.settings)
    trust.require(context, ask)
    _rehearse(context, request, plan, known, before)
    with alone(context, what="up", timeout=patience):
        built = _build(context, request, plan, run_program)
    ran, failed = _setup(context, built.environment, built.acting, dict(built.variables))
    with context.registry.read() as conn:
        view = describe(conn, built.environment, plan.settings)
    done = Up(
        view,
        built.acting,
        built.given,
        plan.inferred,
        built.placed,
        built.made,
        ran,
        built.words,
    )
    return done._replace(failure=failed.message, remedy=failed.remedy) if failed else done


def _build(context: Context, request: Request, plan: _Plan, run_program: RunProgram) -> _Built:
    """Claim, make and write everything that is planned."""
    environment = environments.register(context)
    acting = ensure_acting(context, environment)
    held, given = _claim(context, request, plan, environment, acting)
    made, words = False, list(plan.words)
    if held.database is not None:
        made, open_ = databases.provision(context, environment, held.database, plan.seed)
        words += [open_] if open_ else []
    if plan.project is not None:
        databases.own_directory(context, environment)
        companion.write_files(context, environment, held, plan.project)
    found = variables(environment, held, plan.settings)
    wanted, said = wanted_files(context, environment, held, found, plan.project, run_program)
    repository = Repository(environment.place.path, context.environ, run_program)
    placed = outputs.write_outputs(context, environment, wanted, repository)
    blocks = {each.path for each in wanted if each.mode == BLOCK}
    witnesses.bear_by_block(context.state_dir, environment, blocks, placed)
    words += said
    words += [each.words for each in given if each.words]
    words += [f"{each.path} is left alone: {each.reason}" for each in placed if each.reason]
    return _Built(environment, acting, given, placed, made, found, tuple(words))


def _holdings(context: Context, environment: Environment | None) -> Holdings:
    if environment is None:
        return Holdings()
    with context.registry.read() as conn:
        return holdings_of(claims.of_environment(conn, environment.id))


def _planned(context: Context, request: Request, before: Holdings) -> _Plan:
    for wish in request.ports:
        _check_name(wish)
    place = locate(context.directory)
    settings = with_flags(context.settings, isolation=request.isolation, ports=request.ports)
    settings = databases.settled(settings, before.database)
    context = context._replace(settings=settings)
    project = composing.read_project(context, place.path)
    settings, inferred, words = _with_inferred(settings, project, place.path, before)
    if settings.database.isolation == companion.ISOLATION:
        project = project or composing.empty_project()
        settings = _with_more(settings, [companion.wish(project, _names(settings))])
    databases.check(settings)
    seed = ""
    if settings.database.isolation == "file" and databases.is_missing(before.database):
        seed = databases.seed_file(context, settings, place.main)
    words += _pool_words(settings)
    if kind := no_project(place, context.environ):
        words.append(f"{place.path} is {kind}, no project; corral down takes back what is made")
    flagged = {wish.name for wish in request.ports if wish.preferred is not None}
    honoured = place.is_main or request.address
    asked = tuple(PortAsked(w, honoured or w.name in flagged) for w in settings.ports)
    return _Plan(settings, asked, inferred, project, seed, tuple(words))


def _with_inferred(
    settings: Settings, project: Project | None, root: str, before: Holdings
) -> tuple[Settings, tuple[str, ...], list[str]]:
    """The settings with what compose publishes and, where no port is named, what is guessed."""
    published = composing.wishes(project)
    words: list[str] = []
    inferred: list[str] = []
    if not settings.ports:
        guesses = [Guess(wish.name, wish.preferred, "compose") for wish in published]
        guessed = inference.infer(root, guesses)
        settings = settings._replace(ports=guessed.ports)
        inferred = [wish.name for wish in guessed.ports]
        words += guessed.words
        if not settings.ports:
            words.append(_no_port_words(before))
    return _with_more(settings, published), tuple(inferred), words


def _no_port_words(before: Holdings) -> str:
    if not before.ports:
        return "no port is named or inferred; ask for one with --port NAME or in [ports]"
    kept = ", ".join(f"{port.name}={port.number}" for port in before.ports)
    names = " ".join(port.name for port in before.ports)
    return (
        f"no port is configured or inferred; the environment keeps {kept}, which it has already "
        f"(corral port release {names} gives back)"
    )


def _with_more(settings: Settings, wishes: Iterable[PortWish]) -> Settings:
    known = _names(settings)
    more = tuple(wish for wish in wishes if wish.name not in known)
    return settings._replace(ports=(*settings.ports, *more))


def _names(settings: Settings) -> frozenset[str]:
    return frozenset(wish.name for wish in settings.ports)


def _check_name(wish: PortWish) -> None:
    try:
        name(wish.name)
    except WrongValueError as error:
        raise UsageError(
            f"--port {wish.name!r} cannot name a port",
            remedy="use letters, digits, '-' and '_', a letter first",
        ) from error


def _pool_words(settings: Settings) -> list[str]:
    first, last = sockets.ephemeral_range()
    pool = settings.pool
    if pool.last < first or pool.first > last:
        return []
    words = (
        f"the pool {pool.first}-{pool.last} overlaps the kernel's ephemeral range {first}-{last}: "
        "a program that asks for any free port can get a claimed one; see [pool]"
    )
    return [words]


def _rehearse(
    context: Context,
    request: Request,
    plan: _Plan,
    known: Environment | None,
    held: Holdings,
) -> None:
    """Raise what will be wrong with variables and blocks, before anything is changed."""
    environment = known or Environment(_STAND_IN, locate(context.directory), "", 0.0)
    missing = [
        Port(a.wish.name, a.wish.preferred or plan.settings.pool.first, a.wish.protocol)
        for a in plan.asked
        if held.port(a.wish.name) is None
    ]
    held = held._replace(ports=(*held.ports, *missing))
    if request.address and held.address is None:
        held = held._replace(address=_STAND_IN_ADDRESS)
    if plan.project is not None and held.name("compose") is None:
        held = held._replace(names=(*held.names, ("compose", "stand-in")))
    if held.database is None:
        database = databases.planned(context, environment, plan.settings, "stand_in")
        database = database or _container(context, plan, environment, held)
        held = held._replace(database=database)
    found = variables(environment, held, plan.settings)
    wanted, _ = wanted_files(context, environment, held, found, plan.project, None)
    outputs.rehearse(environment.id, wanted)


def _claim(
    context: Context, request: Request, plan: _Plan, environment: Environment, acting: Acting
) -> tuple[Holdings, tuple[PortGiven, ...]]:
    """One transaction: all that is wanted, or nothing."""
    place, settings = environment.place, plan.settings
    who = (place.repository, place.worktree)
    claimant = Claimant(environment.id, None, acting.owner)
    with context.registry.write() as conn:
        environments_table.require(conn, environment.id)
        address = holdings_of(claims.of_environment(conn, environment.id)).address
        if request.address and address is None:
            address = take_address(conn, claimant, who)
        asked = plan.asked
        if address is not None:
            asked = tuple(each._replace(honoured=True) for each in asked)
        given = take_ports(conn, claimant, asked, settings, who, address)
        if plan.project is not None:
            take_name(conn, environment, claimant, "compose")
            composing.remember_places(conn, environment, plan.project)
        held = holdings_of(claims.of_environment(conn, environment.id))
        container = _container(context, plan, environment, held) if not held.database else None
        databases.take(conn, context, environment, claimant, settings, container)
        return holdings_of(claims.of_environment(conn, environment.id)), given


def _container(
    context: Context, plan: _Plan, environment: Environment, held: Holdings
) -> Database | None:
    """The database container to claim, if that is what is wanted."""
    if plan.settings.database.isolation != companion.ISOLATION or plan.project is None:
        return None
    password = companion.new_password()
    return companion.planned(context, environment, held, plan.project, password)


def _setup(
    context: Context, environment: Environment, acting: Acting, found: dict[str, str]
) -> tuple[tuple[str, ...], RunError | None]:
    commands = context.settings.after_up
    if not setup.pending(context, environment, commands):
        return (), None
    try:
        setup.run(context, environment, commands, {**found, "CORRAL_OWNER": acting.owner})
    except RunError as error:
        # The environment is up all the same; the next `up` runs the commands again.
        return commands, error
    return commands, None
