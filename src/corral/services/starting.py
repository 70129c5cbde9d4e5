"""What both ways of starting have in common: the ticket, the result, and the way back."""

from __future__ import annotations

import os
import time

from corral.decide.ready import Wanted, at
from corral.errors import CorralError, HeldError, RunError
from corral.model.tuples import NamedTuple
from corral.services import service_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.decide.ready import Seen
    from corral.model.report import Report
    from corral.services.context import Context
    from corral.services.launching import Launch
    from corral.services.running import Service
    from corral.services.service_records import Ticket

    TakeDown = Callable[[tuple[str, ...]], Report]

_PATIENCE = 30.0  # seconds for somebody else's start under the same name
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.2


class Result(NamedTuple):
    """What became of a start.

    `record`: id of the record. `url`: of the first port. `already`: it ran before, nothing was
    started. `ready`: None where nobody waited for it. `exit_status`: of a command in the
    foreground, as a shell gives it. `interrupted`: by the interrupt key of the terminal.
    `words`: what a person should know.
    """

    name: str
    record: str
    pid: int | None
    ports: dict[str, int]
    url: str | None
    log: str | None
    already: bool = False
    ready: bool | None = None
    exit_status: int | None = None
    interrupted: bool = False
    words: tuple[str, ...] = ()


def reserve(context: Context, wanted: Ticket) -> Service | None:
    """Write the intents; or, once it is started, the service that has the name already.

    Raises HeldError when somebody else's start under that name does not come to an end.
    """
    deadline, pause = time.monotonic() + _PATIENCE, _FIRST_PAUSE
    while True:
        taken = service_records.reserve(context, wanted)
        if taken is None or not taken.starting:
            return taken
        if time.monotonic() > deadline:
            creator = taken.starting[0].creator
            raise HeldError(
                f"{wanted.name} is being started by process {creator.pid if creator else '?'}",
                remedy="wait for it, or end that process",
                resource=taken.starting[0].id,
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def ticket_for(launch: Launch, *, log: str | None = None) -> Ticket:
    """The ticket of a launch, whose detail is what `stop`, `logs` and a second `run` read."""
    request = launch.request
    return service_records.ticket(
        request.name,
        launch.acting.owner,
        launch.acting.session,
        launch.environment.id,
        detach=request.detach,
        detail={
            "argv": list(launch.argv),
            "cwd": os.getcwd(),
            "log": log,
            "host": launch.host,
            "ports": {port.name: port.number for port in launch.ports},
            "handoff": {port.name: port.handoff for port in launch.ports},
        },
    )


def wanted_ports(launch: Launch) -> tuple[Wanted, ...]:
    """The ports that must listen before the command counts as ready."""
    return tuple(Wanted(p.name, p.number) for p in launch.ports if p.protocol == "tcp")


def url(host: str, port: int, seen: Seen | None) -> str:
    """Where a port answers: at the address that is handed out, or where it was seen instead."""
    for wanted, address in seen.detours if seen is not None else ():
        if wanted.number == port:
            return f"http://{at(address, port)}"
    return f"http://{at(host, port)}"


def detours(host: str, seen: Seen | None) -> tuple[str, ...]:
    """Words on servers that answer, but not at the address that everybody is told."""
    return tuple(
        f"port {wanted.name} answers at {at(address, wanted.number)} only, not at {host}: "
        f"tell the server to listen on {host} ({{host}} in the command)"
        for wanted, address in (seen.detours if seen is not None else ())
    )


def undo(take_down: TakeDown, wanted: Ticket, error: CorralError) -> RunError:
    """Take down what was started; the error, with what remains if anything does."""
    report = take_down(tuple(filter(None, (wanted.service, wanted.supervisor))))
    remains = ", ".join(f"{j.sighting.id} ({j.reason})" for j in report.remaining)
    message = f"{error.message}; still there: {remains}" if remains else error.message
    return RunError(message, remedy=error.remedy, resource=error.resource)
