"""What one thing's labels and records prove, and what speaks against believing them."""

from __future__ import annotations

from corral.backends.engine.labels import WORKING_DIR, project_of
from corral.model.resource import Mark, Proof
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.backends.engine.labels import Labels
    from corral.backends.engine.projects import Claimed, Project
    from corral.model.record import Record
    from corral.model.resource import Kind, Stack

Pairs = tuple[tuple[str, str | int], ...]


class Known(NamedTuple):
    """What the registry knows that bears on an engine's things.

    `namespaces` of labels in use. `projects`: claimed compose projects by name. `records`: live
    records by kind and pinned identity. `kept`: (kind, id). `ports`: claimed ones. `paths`: the
    recorded real paths of every environment. `places`: the real path of each working directory.
    """

    namespaces: tuple[str, ...]
    projects: Mapping[str, Claimed]
    records: Mapping[tuple[Kind, Pairs], Record]
    kept: frozenset[tuple[str, str]]
    ports: frozenset[int]
    paths: Mapping[str, frozenset[str]]
    places: Mapping[str, str]


class Claims(NamedTuple):
    """The marks of one thing, the doubts about them, its record, and its compose stack."""

    marks: tuple[Mark, ...]
    doubts: tuple[str, ...] = ()
    record: str | None = None
    stack: Stack | None = None

    def without_image(self) -> Claims:
        """The same, when the image is gone that might have handed the labels on."""
        if not self.marks or any(mark.proof is Proof.RECORDED for mark in self.marks):
            return self
        lost = "its image is gone, so nobody can tell whether the label came from there"
        return self._replace(doubts=(lost,))


def weigh(
    labels: Mapping[str, str],
    read: Labels,
    record: Record | None,
    known: Known,
    projects: Mapping[str, Project],
) -> Claims:
    """The marks that count; without any, the ones that do not, each with its doubt."""
    recorded = record.id if record is not None else None
    direct = _direct(read.owner, read.session, read.environment, record, known)
    if direct:
        return Claims(direct, (), recorded)
    project = projects.get(project_of(labels))
    if project is not None:
        return _of_project(project, read.environment)
    if read.environment is not None:
        return _of_environment(read.environment, labels, known)
    handed_on = _direct(read.inherited_owner, read.inherited_session, None, None, known)
    if handed_on:
        return Claims(handed_on, ("its image carries the same label, so it proves nothing",))
    return Claims(())


def _direct(
    owner: str | None,
    session: str | None,
    environment: str | None,
    record: Record | None,
    known: Known,
) -> tuple[Mark, ...]:
    """Marks that name a worker."""
    marks = []
    if record is not None:
        place = _existing(record.environment, known)
        marks.append(Mark(Proof.RECORDED, record.owner, environment=place))
    if owner is not None:
        place = _existing(environment, known)
        marks.append(Mark(Proof.LABEL, owner, environment=place))
    if session is not None:
        marks.append(Mark(Proof.LABEL, session=session))
    return tuple(marks)


def _existing(environment: str | None, known: Known) -> str | None:
    """What names a worker stays the worker's when the environment beside it was given up."""
    return environment if environment in known.paths else None


def _of_project(project: Project, environment: str | None) -> Claims:
    marks = [Mark(Proof.PROJECT, environment=project.environment)]
    if environment is not None:
        marks.append(Mark(Proof.LABEL, environment=environment))
    doubts = (project.doubt,) if project.doubt else ()
    return Claims(tuple(marks), doubts, None, project.stack)


def _of_environment(environment: str, labels: Mapping[str, str], known: Known) -> Claims:
    """A lone environment label; a compose file that carries it may have been copied elsewhere."""
    marks = (Mark(Proof.LABEL, environment=environment),)
    directory = labels.get(WORKING_DIR, "")
    place = known.places.get(directory, directory)
    if project_of(labels) and place not in known.paths.get(environment, frozenset()):
        started = f"names {environment}, but was started in {directory or 'an unknown directory'}"
        return Claims(marks, (started,))
    return Claims(marks)
