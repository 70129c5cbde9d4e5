"""Which optional programs are here, found without running anything; and what stands for the rest.

A backend whose program is missing, and that nothing in the registry leads to, costs a look at the
directories of PATH and no import.
"""

from __future__ import annotations

import os

from corral.model.resource import BackendState, Observation
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.contracts import RemovalContext, View
    from corral.model.report import Outcome
    from corral.model.resource import Judgement, Kind, Sighting

FIRECRACKER = "firecracker"


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """The path of a program on these variables' PATH, "" where there is none."""
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory or ".", name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return ""


def watches_microvms(view: View) -> bool:
    """Whether microVMs were ever started through corral here: a run root, or a record."""
    root = statedir.run_dir(view.state_dir)
    return os.path.isdir(root) or any(record.backend == FIRECRACKER for record in view.records)


class AbsentBackend:
    """A backend that is not on this machine: it sees nothing and never held anything here."""

    local = True

    def __init__(self, name: str, kinds: frozenset[Kind], reason: str) -> None:
        self.name = name
        self.kinds = kinds
        self._reason = reason

    def observe(self, view: View) -> Observation:
        """Absent."""
        del view
        return Observation(self.name, BackendState.ABSENT, self._reason)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """None."""
        del view, kind, identifier
        return None  # the protocol's other answer is a sighting

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Nothing: it has shown nothing that could be removed."""
        del targets, context
        return ()
