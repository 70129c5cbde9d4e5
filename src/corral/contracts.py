"""The narrow protocols that services need, and the values that cross them."""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from corral.decide.engine_calls import EngineCall
    from corral.decide.judge import World
    from corral.model.environment import Claim
    from corral.model.record import BadRecord, Record
    from corral.model.report import Outcome
    from corral.model.resource import Judgement, Kind, Observation, Sighting
else:
    Protocol = object


class View(NamedTuple):
    """One consistent reading of the registry, with what is proven of owners and environments.

    `kept`: (kind, id or pinned identity in text) that `corral keep` named. `state_dir`: absolute.
    `extra_programs`: names from `[protect] programs`. `wide`: the look is about the whole machine
    (`cleanup`, `status --all`), not about one owner or environment.
    """

    world: World
    records: tuple[Record, ...]
    claims: tuple[Claim, ...]
    kept: frozenset[tuple[str, str]]
    bad: tuple[BadRecord, ...]
    state_dir: str
    namespace: str
    extra_programs: frozenset[str]
    now: float
    wide: bool = False


class RemovalContext(NamedTuple):
    """What a backend needs while it removes.

    `confirm(target)` is called right before each destructive call, reads the owner's epochs and
    the spool again, and returns "" or the reason why the target must now be left. `deadline` is on
    the monotonic clock. `gentle` and `force` are the seconds given to TERM and to KILL.
    """

    view: View
    confirm: Callable[[Judgement], str]
    deadline: float
    gentle: float = 5.0
    force: float = 2.0


class Backend(Protocol):
    """One place that resources live in."""

    @property
    def name(self) -> str:
        """The word under which it appears in `backends`."""

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of resources it can see and remove."""

    def observe(self, view: View) -> Observation:
        """Everything here that carries a mark, a record or a claim, and the shared runtime.

        A backend that is not on this machine answers with the state ABSENT. Raises
        EnumerationError when the look failed: it is not an empty look.
        """

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """Exactly this thing, marked or not, with what protects it; None when there is none.

        Raises EnumerationError when the look failed.
        """

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Try to remove the targets, which are of one kind, each pinned by its identity.

        One outcome for each target: "removed" (to be verified by another look), "already_gone",
        "remaining" or "left", with the reason. Raises EnumerationError when a target can neither
        be pinned nor be shown to be gone.
        """


class Engine(NamedTuple):
    """A container engine that a command line leads to.

    `backend`: the name of its backend. `place`: what leads there again. `daemon`: its identity,
    "" when it could not be asked.
    """

    backend: str
    place: str
    daemon: str


class Engines(Protocol):
    """What `corral run` asks of the container engines."""

    def reached_by(self, call: EngineCall) -> Engine | None:
        """The engine that a command line leads to; None where corral cannot look into it."""

    def publishers(self, view: View, port: int) -> tuple[Sighting, ...]:
        """The containers that publish this port of the machine, with their marks and doubts.

        An engine that cannot be asked publishes nothing that anybody could be sure of.
        """


class ClusterSight(NamedTuple):
    """One cluster by its name: `identity` is what pins it, None where there is none.

    `place` leads to where the tool would make it.
    """

    tool: str
    place: str
    identity: tuple[tuple[str, str | int], ...] | None


class Clusters(Protocol):
    """What `corral run` asks of the tools that make clusters."""

    def sight(self, view: View, tool: str, name: str) -> ClusterSight:
        """The cluster of that name, where the tool would make it now.

        Raises EnumerationError where it cannot be told whether there is one.
        """
