"""Processes that fork and end faster than the process table is read.

Such a process is in no look twice. But whatever it becomes is handed to its supervisor, so the
supervisor's list of children is asked instead, one child at a time, and each is judged by the same
rules before it is ended. A supervisor is never ended while something below it lives: that would be
lost for ever.
"""

from __future__ import annotations

import signal
import time

from corral.decide.ancestry import Look, sight_process
from corral.kernel import identity as identities
from corral.kernel import procfs
from corral.kernel.children import child_pids
from corral.kernel.pidfd import pin
from corral.kernel.procstat import read_stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.contracts import RemovalContext
    from corral.model.process import ProcessTable
    from corral.model.resource import Judgement, Sighting

    # The roots and anchors of a look, for a table.
    Evidence = Callable[[ProcessTable], Look]

_SECONDS = 2.0
# The kernel's list of children may leave one out that is just being handed over (proc(5)).
_EMPTY_LOOKS, _PAUSE = 20, 0.003
_DEAD = "ZXx"
_CONFIRM_AGAIN = 0.1  # seconds after which the owner's epochs are read again


def chase(supervisor: Judgement, context: RemovalContext, evidence: Evidence) -> str:
    """End what lives below a supervisor, however fast it moves; "" or why something remains."""
    pid = int(supervisor.sighting.id)
    above = procfs.branch(pid)
    begun = time.monotonic()
    confirmed, stubborn, empty = float("-inf"), 0, 0
    while time.monotonic() - begun < _SECONDS:
        children = _living(pid)
        if not children:
            empty += 1
            if empty == _EMPTY_LOOKS or read_stat(pid) is None:
                return ""
            time.sleep(_PAUSE)
            continue
        stubborn, empty = children[0], 0
        if time.monotonic() - confirmed > _CONFIRM_AGAIN:
            doubt = context.confirm(supervisor)
            if doubt:
                return doubt
            confirmed = time.monotonic()
        for child in children:
            doubt = _end(child, supervisor, above, context, evidence)
            if doubt:
                return f"it supervises process {child}, which is left: {doubt}"
    return (
        f"process {stubborn} below it lives on, or becomes another one faster than it can be ended"
    )


def _living(pid: int) -> list[int]:
    """The children of a process that are no zombies."""
    stats = {child: read_stat(child) for child in sorted(child_pids(pid) or ())}
    return [
        child
        for child, stat in stats.items()
        if stat is not None and stat.ppid == pid and stat.state not in _DEAD
    ]


def _end(
    pid: int,
    supervisor: Judgement,
    above: ProcessTable,
    context: RemovalContext,
    evidence: Evidence,
) -> str:
    """KILL one child, if the rules prove that it is the supervisor's owner's; why not, or "".

    What was kept on request since the look is found out here, too.
    """
    row = procfs.look_at(pid)
    if row is None or row.ppid != int(supervisor.sighting.id):
        return ""
    sighting = sight_process(evidence(above._replace(rows={**above.rows, pid: row})), pid)
    if not _is_proven(sighting, supervisor):
        return ""
    try:
        with pin(identities.decode_identity(sighting.identity)) as pinned:
            doubt = context.confirm(supervisor._replace(sighting=sighting))
            if not doubt:
                pinned.signal(signal.SIGKILL)
            return doubt
    except identities.ProcessGoneError:
        # It has become another one already.
        return ""


def _is_proven(sighting: Sighting, supervisor: Judgement) -> bool:
    owners = {mark.owner for mark in sighting.marks}
    hindered = sighting.doubts or sighting.protections or sighting.kept
    return owners == {supervisor.owner} and not hindered
