"""Compose projects: whether a claimed name proves that a stack belongs to an environment.

A project's name alone is no proof: a copied `.env` names the first worktree's project in the
second one. So every container of the project must have been started in a directory of the
environment that claimed the name; a single one from elsewhere leaves the whole project in doubt.
"""

from __future__ import annotations

from corral.backends.engine.labels import WORKING_DIR, project_of
from corral.model.resource import Stack
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corral.backends.engine.views import Container, Network, Volume


class Claimed(NamedTuple):
    """A claimed project: by which environment, from which real paths, and who intended it."""

    environment: str
    paths: frozenset[str]
    intents: frozenset[str] = frozenset()


class Project(NamedTuple):
    """A claimed project as it was seen: whose it is, or why that cannot be told."""

    environment: str
    doubt: str
    stack: Stack


def seen_projects(
    claims: Mapping[str, Claimed],
    containers: Iterable[Container],
    others: Iterable[Network | Volume],
    places: Mapping[str, str],
) -> dict[str, Project]:
    """The claimed projects by name. `places` gives the real path of each working directory."""
    members: dict[str, list[Container]] = {name: [] for name in claims}
    born: dict[str, list[float]] = {name: [] for name in claims}
    for container in containers:
        if project_of(container.labels) in members:
            members[project_of(container.labels)].append(container)
    for other in others:
        if project_of(other.labels) in born:
            born[project_of(other.labels)].append(other.created or 0.0)
    return {
        name: Project(
            claim.environment,
            _doubt(name, claim, members[name], places),
            Stack(_oldest(members[name], born[name]), claim.intents),
        )
        for name, claim in claims.items()
    }


def _doubt(
    name: str, claim: Claimed, members: Iterable[Container], places: Mapping[str, str]
) -> str:
    for container in members:
        directory = container.labels.get(WORKING_DIR, "")
        if not directory:
            return f"container {container.name} of project {name} does not say where it was started"
        if places.get(directory, directory) not in claim.paths:
            return f"container {container.name} of project {name} was started in {directory}"
    return ""


def _oldest(members: list[Container], born: list[float]) -> float:
    """The first container's creation; without containers the first other thing's, else long ago."""
    return min((c.created for c in members), default=min(born, default=0.0))
