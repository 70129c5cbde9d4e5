"""Take down exactly one service: its recorded processes and all that descends from them."""

from __future__ import annotations

from corral.decide.judge import Request, Trigger
from corral.decide.spelling import did_you_mean
from corral.errors import ForeignError, NotFoundError
from corral.model.report import Report
from corral.model.resource import Kind
from corral.services import environments, owners, running
from corral.services.launching import check_name
from corral.services.teardown import Teardown, carry_out, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from corral.contracts import Backend
    from corral.model.environment import Environment
    from corral.services.context import Context
    from corral.services.running import Service

# What a service can be: a process, or a microVM, which is a process with a backend of its own.
_RUNNING = frozenset({Kind.PROCESS, Kind.MICROVM})


def stop(
    context: Context, backends: Sequence[Backend], name: str, *, force: bool = False
) -> Report:
    """Take down what runs under the name in the context's environment.

    An empty report when it had ended already. Raises NotFoundError for a name that nothing ever
    had there, ForeignError for another owner's service, unless `force`.
    """
    environment = environments.require(context)
    service = find(context, environment, check_name(name))
    running.refuse_unknown(service)
    report = Report()
    # Several owners can have had a part in it only where somebody used force before.
    for owner in dict.fromkeys(record.owner for record in service.alive):
        if not force:
            _refuse_foreign(context, environment, name, owner)
        ids = [record.id for record in service.alive if record.owner == owner]
        report = report.merged(remove_records(context, backends, ids, owner, "stop"))
    return report


def find(context: Context, environment: Environment, name: str) -> Service:
    """What runs or ran under the name. Raises NotFoundError for a name that nothing ever had."""
    from corral.services.service_log import log_path
    from corral.store import statedir

    with context.registry.read() as conn:
        service = running.named(conn, environment.id, name)
        others = [each.name for each in running.all_named(conn, environment.id)]
    directory = statedir.environment_dir(context.state_dir, environment.id)
    known = service.alive or service.starting or service.dead
    if not known and not _exists(log_path(directory, name)):
        raise NotFoundError(
            f"nothing is called {name} in {environment.place.path}{did_you_mean(name, others)}",
            remedy=f"what runs there: {', '.join(others) or 'nothing'}",
            resource=name,
        )
    return service


def _exists(path: str) -> bool:
    import os

    return os.path.lexists(path)


def _refuse_foreign(context: Context, environment: Environment, name: str, owner: str) -> None:
    acting = owners.acting(context, environment)
    if acting is None or acting.owner != owner:
        raise ForeignError(
            f"{name} was started by another worker: {owners.called(context, owner)}",
            remedy="let that one stop it, or give --force",
            resource=owner,
        )


def remove_records(
    context: Context,
    backends: Sequence[Backend],
    ids: Collection[str],
    owner: str,
    trigger: str,
) -> Report:
    """Take down the processes of these records of one owner, with all that descends from them.

    The one removal protocol, narrowed to what these records lead to. `trigger` goes into the
    journal.
    """
    looking = [backend for backend in backends if _RUNNING & backend.kinds]
    job = Teardown(Request(Trigger.REAP, owner=owner), trigger)
    plan = prepare(context, looking, job)
    mine = tuple(j for j in plan.judgements if j.sighting.record in ids)
    vms = {j.sighting.id for j in mine if j.sighting.kind is Kind.MICROVM}
    mine += tuple(  # a run directory is called as the microVM in it
        j for j in plan.judgements if j.sighting.kind is Kind.DIRECTORY and j.sighting.name in vms
    )
    report = carry_out(context, looking, job, shown=plan._replace(judgements=mine))
    return report._replace(left=tuple(j for j in report.left if j.sighting.record in ids))


def remove_started(
    context: Context, backends: Sequence[Backend], ids: Collection[str], trigger: str = "run"
) -> Report:
    """Take down what a start has left behind. `trigger` goes into the journal."""
    from corral.store import records

    with context.registry.read() as conn:
        found = [record for i in ids if (record := records.find(conn, i)) is not None]
    report = Report()
    for owner in dict.fromkeys(record.owner for record in found):
        mine = [record.id for record in found if record.owner == owner]
        report = report.merged(remove_records(context, backends, mine, owner, trigger))
    return report
