"""Containers that `corral run -- docker ...` starts: labelled, and their engine written down.

A label proves whose a container is, wherever it is seen. The intent says which engine to look
into, also when the variables lead to another one by then.
"""

from __future__ import annotations

import json
import time

from corral.decide.engine_calls import label_arguments, read_engine_call
from corral.kernel import identity
from corral.model.environment import ClaimKind
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.services import lifecycle
from corral.services.service_records import new_record_id
from corral.services.view import look
from corral.store import claims, records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import Engine, Engines
    from corral.decide.engine_calls import EngineCall
    from corral.model.environment import Environment
    from corral.model.resource import Sighting
    from corral.services.context import Acting, Context
    from corral.services.launching import Launch

COMPOSE_ROLE, LABELLED_ROLE = "compose", "labelled"
_PROJECT_VARIABLE = "COMPOSE_PROJECT_NAME"
_SCOPE = "compose"
_APPLE = "container"


class Worker(NamedTuple):
    """For whom something is started, and where."""

    acting: Acting
    environment: Environment


class Labelled(NamedTuple):
    """The command line to be run, and what a person should know about it."""

    argv: tuple[str, ...]
    words: tuple[str, ...] = ()


def labels_of(worker: Worker, namespace: str) -> dict[str, str]:
    """The labels that prove whose a container, network or volume is."""
    return {
        f"{namespace}.owner": worker.acting.owner,
        f"{namespace}.env": worker.environment.id,
    }


def labelled(
    context: Context, launch: Launch, engines: Callable[[], Engines]
) -> tuple[Launch, tuple[str, ...]]:
    """The launch with labels in its command line, and what a person should know about them.

    Its containers count as its own listeners. Raises what `label` raises.
    """
    worker = Worker(launch.acting, launch.environment)
    done = label(context, worker, launch.request.argv, engines)
    request = launch.request._replace(argv=done.argv)
    ours = publishes(context, worker, engines)
    return launch._replace(request=request, also_ours=ours), done.words


def label(
    context: Context, worker: Worker, argv: Sequence[str], engines: Callable[[], Engines]
) -> Labelled:
    """The command line with labels on what it creates, and the intent written down.

    Raises HeldError and RegistryError; then nothing was written and nothing may be started.
    """
    call = read_engine_call(argv)
    if call is None:
        return Labelled(tuple(argv))
    if call.unclear:
        return Labelled(tuple(argv), (_unclear(call, worker, context.settings.namespace),))
    if not call.creates:
        return Labelled(tuple(argv))
    project = _project(context, worker, call) if call.creates == "compose" else ""
    if call.creates == "compose" and not project:
        return Labelled(tuple(argv), (_foreign_project(call),))
    engine = engines().reached_by(call)
    if engine is None and call.tool == _APPLE:
        return Labelled(tuple(argv))  # on this system it is some other program of that name
    if engine is None:
        words: tuple[str, ...] = (_out_of_sight(call),)
    else:
        words = ()
        if engine.daemon:  # an engine that does not answer creates nothing either
            _write_down(context, worker, engine, call, project)
    return Labelled(label_arguments(argv, labels_of(worker, context.settings.namespace)), words)


def _project(context: Context, worker: Worker, call: EngineCall) -> str:
    """The environment's own project, if it is the one that the command is about; else ""."""
    with context.registry.read() as conn:
        held = claims.of_environment(conn, worker.environment.id)
    own = next((c.value for c in held if c.kind is ClaimKind.NAME and c.scope == _SCOPE), "")
    named = call.project or context.environ.get(_PROJECT_VARIABLE, "") or own
    return own if named == own else ""


def _write_down(
    context: Context, worker: Worker, engine: Engine, call: EngineCall, project: str
) -> None:
    """One intent for each owner, engine and project; a new start renews it."""
    compose = call.creates == "compose"
    record = Record(
        id=new_record_id(),
        kind=Kind.CONTAINER if compose else Kind(call.creates),
        backend=engine.backend,
        role=COMPOSE_ROLE if compose else LABELLED_ROLE,
        name=project,
        owner=worker.acting.owner,
        session=worker.acting.session,
        environment=worker.environment.id,
        state=RecordState.INTENT,
        identity=(),
        creator=identity.own_identity(),
        created_at=time.time(),
        detail=json.dumps({"place": engine.place, "daemon": engine.daemon}),
    )
    with (
        lifecycle.hold(context.state_dir, what="run"),
        context.registry.write() as conn,
    ):
        for known in records.of_owner(conn, record.owner):
            same = (known.kind, known.role, known.name, known.environment, known.detail)
            if same == (record.kind, record.role, project, record.environment, record.detail):
                records.delete(conn, known.id)
        records.insert(conn, record)


def _unclear(call: EngineCall, worker: Worker, namespace: str) -> str:
    pairs = " ".join(f"--label {k}={v}" for k, v in labels_of(worker, namespace).items())
    return (
        f"the option {call.unclear} of {call.tool} is not known, so nothing is labelled; "
        f"if it creates something, add: {pairs}"
    )


def _foreign_project(call: EngineCall) -> str:
    named = f"the project {call.project}" if call.project else "this project"
    return (
        f"{named} is not the one that this environment claimed (corral up), so corral "
        "will not take it down"
    )


def _out_of_sight(call: EngineCall) -> str:
    return (
        f"it is labelled, but corral cannot look into this engine of {call.tool}; take it down "
        "by its label"
    )


def publishes(
    context: Context, worker: Worker, engines: Callable[[], Engines]
) -> Callable[[int], bool]:
    """Whether one of this worker's or environment's own containers publishes a port."""

    def own(sighting: Sighting) -> bool:
        return not sighting.doubts and any(
            mark.owner == worker.acting.owner
            or mark.environment == worker.environment.id
            or (mark.session is not None and mark.session == worker.acting.session)
            for mark in sighting.marks
        )

    def answer(port: int) -> bool:
        return any(own(s) for s in engines().publishers(look(context), port))

    return answer
