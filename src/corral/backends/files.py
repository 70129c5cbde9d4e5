"""The environments' own directories below the state directory, recognised by their nonces."""

from __future__ import annotations

import os

from corral.errors import EnumerationError
from corral.model.resource import BackendState, Kind, Mark, Observation, Proof, Sighting
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.contracts import RemovalContext, View
    from corral.model.environment import EnvironmentState
    from corral.model.report import Outcome
    from corral.model.resource import Judgement

NAME = "file"


class FileBackend:
    """The backend of directories that corral made, each with its nonce inside."""

    name = NAME
    kinds = frozenset({Kind.DIRECTORY})
    local = True

    def observe(self, view: View) -> Observation:
        """Every entry of the environments' directory; what bears no known nonce is doubted."""
        root = statedir.environments_dir(view.state_dir)
        try:
            # A removal that was cut short leaves a name with a dot, which the next one clears.
            names = sorted(n for n in os.listdir(root) if not n.startswith("."))
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise EnumerationError(
                f"{root} cannot be listed: {error.strerror}", backend=NAME
            ) from error
        known = view.world.environments
        seen = tuple(_sighting(os.path.join(root, n), n, known.get(n)) for n in names)
        return Observation(NAME, BackendState.OK, f"{len(seen)} directories", seen)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """One environment's directory by its path or name."""
        del kind
        seen = self.observe(view).sightings
        return next((s for s in seen if identifier in {s.id, s.name}), None)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Remove each directory through descriptors, never following a link."""
        from corral.kernel import trees
        from corral.model.report import Outcome

        outcomes = []
        for target in targets:
            doubt = context.confirm(target)
            if doubt:
                outcomes.append(Outcome(target.sighting, "left", doubt))
                continue
            nonce = str(dict(target.sighting.identity)["nonce"])
            failures = trees.remove_tree(target.sighting.id, nonce)
            outcomes.append(
                Outcome(target.sighting, "remaining", failures[0])
                if failures
                else Outcome(target.sighting, "removed", "removed")
            )
        return tuple(outcomes)


def _sighting(path: str, name: str, state: EnvironmentState | None) -> Sighting:
    from corral.kernel import trees

    nonce = trees.read_nonce(path)
    matches = state is not None and nonce == state.environment.nonce
    doubts: tuple[str, ...] = ()
    if state is None:
        doubts = ("the registry knows no environment of this name",)
    elif not matches:
        doubts = ("it does not bear the nonce that the registry knows",)
    return Sighting(
        kind=Kind.DIRECTORY,
        id=path,
        name=name,
        backend=NAME,
        state="present",
        created_at=state.environment.created_at if state else None,
        identity=(("path", path), ("nonce", nonce or "")),
        marks=(Mark(Proof.PATH, environment=name),) if matches else (),
        doubts=doubts,
        data=_holds_data(path),
    )


def _holds_data(path: str) -> bool:
    """Whether a database lies in the directory; what cannot be told counts as data."""
    try:
        names = os.listdir(path)
    except OSError:
        # Unreadable or no directory: nobody can say that nothing is lost.
        return True
    return any(".sqlite" in name or name == "data" for name in names)
