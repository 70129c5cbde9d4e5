"""What an agent's hooks tell: a session started. Durable, said in a few lines, never in the way.

What follows from a session's end is in `reaping`; this module has to be quick to import.
"""

from __future__ import annotations

import os
import time

from corral.decide.hooks import journal_line
from corral.decide.workers import Inherited
from corral.errors import ConfigurationError, CorralError, HeldError, RegistryError
from corral.model.tuples import NamedTuple
from corral.services import owners as rules
from corral.services.environments import find, register
from corral.services.places import no_project
from corral.store import claims, environments, journal, sessions, spool
from corral.store import owners as table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.config import Settings
    from corral.model.environment import Environment
    from corral.model.hook import Payload
    from corral.services.context import Context
    from corral.services.repository import Ran, RunProgram
    from corral.store.sessions import Begun

# What cannot pass the gate in this time goes to the spool: the agent waits for its hook.
_GATE_SECONDS = 1.0
_NOTE_SECONDS = 0.2
_GIT_SECONDS = 5.0
_MOST_LINES = 8
_DIRECTIVE = (
    "Before you start a server or a stack, look at corral status, and use what runs already.",
    "Servers: corral run --detach --name NAME --wait-ready 30 -- COMMAND",
    "Containers and clusters: corral run -- docker ... (or kind, k3d, minikube)",
    "What you start is taken down when this session ends, nothing else is; now: corral reap",
    "Never stop the container runtime, a tunnel, or what another worker started.",
)
_WIDEST = 400


class Welcome(NamedTuple):
    """What a starting agent gets: variables for its shells, and lines of context for it."""

    variables: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]


def settings_of(directory: str, environ: Mapping[str, str]) -> tuple[Settings, str]:
    """The settings for a directory; where they are wrong, the defaults and what is wrong."""
    from corral.config import Settings, load_settings

    try:
        return load_settings(directory, environ), ""
    except ConfigurationError as error:
        return Settings(root=directory), str(error)


def started(
    context: Context, payload: Payload, agent: str, run_program: RunProgram, fault: str = ""
) -> Welcome:
    """Open (or find) the epoch, give the environment its ports and files, and say so.

    `fault`: what is wrong with the configuration; then the session is marked and nothing else.
    """
    above = rules.ancestors(context.pid)
    environment = _registered(context)
    begun = rules.begun_now(
        context, Inherited(agent, payload.session), environment.id if environment else None, above
    )
    owner = _begin(context, begun, payload, agent)
    if environment is None:
        words = "corral's registry is busy: this worktree has nothing of its own yet, see corral up"
        return Welcome((("CORRAL_OWNER", owner),), (words,))
    said = (fault,) if fault else _provision(context, environment, run_program)
    variables = () if fault else _variables(context, environment)
    exported = bool(context.environ.get("CLAUDE_ENV_FILE"))
    lines = _lines(environment, variables, said, exported=exported)
    return Welcome((("CORRAL_OWNER", owner), *variables), lines)


def _registered(context: Context) -> Environment | None:
    try:
        return register(context, timeout=_GATE_SECONDS)
    except HeldError:
        # Whoever holds the gate may hold it for long: take what is known already.
        return find(context)


def _begin(context: Context, begun: Begun, payload: Payload, agent: str) -> str:
    """Write the start and its line in the journal, or leave both in the spool; the owner's id."""
    line = journal_line(payload, agent, begun.at, environment=begun.environment)
    try:
        with context.registry.write(timeout=_GATE_SECONDS) as conn:
            owner, _ = sessions.begin(conn, begun)
            journal.append(conn, **{**line, "owner": owner})
            return owner
    except (HeldError, RegistryError):
        # The gate is busy or the registry is stuck: the spool is as durable.
        from corral.store.spooled import begun_entry

        spool.append(context.state_dir, begun_entry(begun))
        spool.append(context.state_dir, {"entry": "event", **line})
    with context.registry.read() as conn:
        known = table.by_session(conn, begun.session)
    return known.id if known is not None else begun.owner


def _provision(
    context: Context, environment: Environment, run_program: RunProgram
) -> tuple[str, ...]:
    """Ports and files where they are absent: no command is run, no database is made."""
    if _is_up(context, environment):
        return ()
    kind = no_project(environment.place, context.environ)
    if kind:
        return (f"this is {kind}, no project: nothing is written here unless corral up is called",)
    from corral.services.up import Request, up

    def hurried(
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Ran:
        return run_program(argv, timeout=min(timeout, _GIT_SECONDS), env=env, cwd=cwd)

    quiet = context._replace(settings=context.settings._replace(after_up=()))
    try:
        asked = Request(isolation="none")
        return up(quiet, asked, hurried, patience=_GATE_SECONDS).words
    except (CorralError, OSError) as error:
        # A project's fault or a full disk is the user's to mend; the session is marked all the
        # same, and `corral up` says it again.
        return (f"corral up did not work: {error}",)


def _is_up(context: Context, environment: Environment) -> bool:
    """Whether `up` was here and what it made is still there."""
    with context.registry.read() as conn:
        held = claims.of_environment(conn, environment.id)
        outputs = environments.outputs(conn, environment.id)
    if not held and not outputs:
        return False
    named = {claim.name for claim in held}
    return all(wish.name in named for wish in context.settings.ports) and all(
        os.path.lexists(output.path) for output in outputs
    )


def _variables(context: Context, environment: Environment) -> tuple[tuple[str, str], ...]:
    from corral.services.variables import variables_of

    try:
        with context.registry.read() as conn:
            return variables_of(conn, environment, context.settings)
    except CorralError:
        # A wrong [vars] entry; `corral up` names it.
        return ()


def _lines(
    environment: Environment,
    variables: tuple[tuple[str, str], ...],
    words: tuple[str, ...],
    *,
    exported: bool,
) -> tuple[str, ...]:
    ports = " ".join(f"{name}={value}" for name, value in variables if name.endswith("PORT"))
    ports = ports or "none yet (corral up --port NAME claims one)"
    where = ", in your shell" if exported else " (corral env prints them)"
    own = f"corral: this worktree is environment {environment.id}; its own ports{where}: {ports}"
    lines = (own, *_DIRECTIVE, *words)
    return tuple(_one_line(line) for line in lines[:_MOST_LINES])


def _one_line(line: str) -> str:
    clean = "".join(c if c.isprintable() else " " for c in line)
    return clean if len(clean) <= _WIDEST else f"{clean[: _WIDEST - 1]}…"


def noted(context: Context, payload: Payload | None, agent: str) -> None:
    """One line in the journal for a call that changes nothing."""
    line = journal_line(payload, agent, time.time())
    try:
        with context.registry.write(timeout=_NOTE_SECONDS) as conn:
            owner = table.by_session(conn, payload.session) if payload is not None else None
            journal.append(conn, **{**line, "owner": owner.id if owner is not None else None})
    except (HeldError, RegistryError):
        # As above.
        spool.append(context.state_dir, {"entry": "event", **line})
