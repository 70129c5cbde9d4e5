"""Whose the things in an engine are: values in, sightings out.

Only what carries a mark, is recorded, or stands where an environment expects its own is seen.
Everything else in the engine belongs to somebody else and is not even listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from corral.backends.engine.labels import (
    cluster_node,
    read_labels,
    testcontainers_session,
    without_handed_on_project,
)
from corral.backends.engine.projects import seen_projects
from corral.backends.engine.proofs import Claims, weigh
from corral.decide.localstack import is_localstack
from corral.model.resource import Kind, Sighting
from corral.model.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corral.backends.engine.projects import Project
    from corral.backends.engine.proofs import Known, Pairs
    from corral.backends.engine.views import Container, Network, Volume


_NODE = "a node of a cluster, which is removed as a whole"
_SHORT_ID = 12
_Thing = TypeVar("_Thing", "Container", "Network")


class Holdings(NamedTuple):
    """All that one engine holds. `daemon` names the engine for good.

    `images`: the labels of the images of marked containers by image id, None for an image that is
    gone. `births`: for volumes, a creation time that does not change, where one can be had.
    """

    backend: str
    daemon: str
    containers: tuple[Container, ...]
    networks: tuple[Network, ...]
    volumes: tuple[Volume, ...]
    images: Mapping[str, Mapping[str, str] | None]
    births: Mapping[str, str]


def sightings(holdings: Holdings, known: Known) -> tuple[Sighting, ...]:
    """Everything in the engine that concerns corral."""
    look = _look(holdings, known)
    found = [
        *(look.container(c) for c in look.holdings.containers),
        *(look.network(n) for n in holdings.networks),
        *(look.volume(v) for v in holdings.volumes),
    ]
    seen = [sighting for sighting in found if sighting is not None]
    return (*seen, *look.spawned_by_localstack(seen))


def exactly(holdings: Holdings, known: Known, kind: Kind, wanted: str) -> Sighting | None:
    """The one thing that is `wanted` by its full id, its name, or 12 or more digits of its id."""
    look = _look(holdings, known)
    found: Sighting | None = None
    if kind is Kind.CONTAINER:
        container = _one(look.holdings.containers, wanted)
        found = look.container(container, asked=True) if container else None
    elif kind is Kind.NETWORK:
        network = _one(holdings.networks, wanted)
        found = look.network(network, asked=True) if network else None
    elif kind is Kind.VOLUME:
        volume = next((v for v in holdings.volumes if v.name == wanted), None)
        found = look.volume(volume, asked=True) if volume else None
    return found


def _one(things: tuple[_Thing, ...], wanted: str) -> _Thing | None:
    for thing in things:
        if wanted in {thing.id, thing.name}:
            return thing
    if len(wanted) < _SHORT_ID:
        return None
    found = [thing for thing in things if thing.id.startswith(wanted)]
    return found[0] if len(found) == 1 else None


def _look(holdings: Holdings, known: Known) -> _Look:
    containers = tuple(_started_as_it_says(c, holdings.images) for c in holdings.containers)
    others: tuple[Network | Volume, ...] = (*holdings.networks, *holdings.volumes)
    projects = seen_projects(known.projects, containers, others, known.places)
    return _Look(holdings._replace(containers=containers), known, projects)


def _started_as_it_says(
    container: Container, images: Mapping[str, Mapping[str, str] | None]
) -> Container:
    image = images.get(container.image) or {}
    return container._replace(labels=without_handed_on_project(container.labels, image))


def container_identity(identifier: str, daemon: str) -> Pairs:
    """What pins one container: its full id is random and never given again."""
    return (("id", identifier), ("daemon", daemon))


def network_identity(network: Network, daemon: str) -> Pairs:
    """What pins one network; Podman derives the id from the name, so its creation counts too."""
    return (("id", network.id), ("created", network.stamp), ("daemon", daemon))


def volume_identity(volume: Volume, birth: str, daemon: str) -> Pairs:
    """What pins one volume: it has only a name, and a birth where the engine tells it."""
    return (("name", volume.name), ("created", birth), ("daemon", daemon))


def identities(held: Holdings) -> Iterator[Pairs]:
    """What pins each thing in the engine."""
    for container in held.containers:
        yield container_identity(container.id, held.daemon)
    for network in held.networks:
        yield network_identity(network, held.daemon)
    for volume in held.volumes:
        birth = held.births.get(volume.name, volume.stamp)
        yield volume_identity(volume, birth, held.daemon)


class _Look:
    def __init__(self, holdings: Holdings, known: Known, projects: Mapping[str, Project]) -> None:
        self.holdings = holdings
        self._known = known
        self._projects = projects

    def container(self, container: Container, *, asked: bool = False) -> Sighting | None:
        """What is seen of a container; one that nobody asked for needs a reason to be seen."""
        identity = container_identity(container.id, self.holdings.daemon)
        record = self._known.records.get((Kind.CONTAINER, identity))
        image = self.holdings.images.get(container.image, {})
        read = read_labels(container.labels, self._known.namespaces, image or {})
        claims = weigh(container.labels, read, record, self._known, self._projects)
        if image is None:
            claims = claims.without_image()
        seen = self._sighting(Kind.CONTAINER, container, container.id, identity, claims, read.keep)
        seen = seen._replace(state=container.state)
        if cluster_node(container.labels) and record is None:
            return seen._replace(protections=(_NODE,)) if asked else None
        if claims.marks:
            return seen
        session = testcontainers_session(container.labels)
        if session is not None:
            whose = f"belongs to Testcontainers session {session or 'unknown'}: only ever shown"
            return seen._replace(protections=(whose,))
        port = next((p for p in container.ports if p in self._known.ports), None)
        if port is not None and not asked:
            return seen._replace(doubts=(f"publishes the claimed port {port} without a mark",))
        return seen if asked else None

    def network(self, network: Network, *, asked: bool = False) -> Sighting | None:
        """What is seen of a network."""
        identity = network_identity(network, self.holdings.daemon)
        if network.built_in and not asked:
            return None
        seen = self._plain(Kind.NETWORK, network, network.id, identity, asked=asked)
        if seen is not None and network.built_in:
            return seen._replace(protections=("the engine has it by itself",))
        return seen

    def volume(self, volume: Volume, *, asked: bool = False) -> Sighting | None:
        """What is seen of a volume."""
        birth = self.holdings.births.get(volume.name, volume.stamp)
        identity = volume_identity(volume, birth, self.holdings.daemon)
        seen = self._plain(Kind.VOLUME, volume, volume.name, identity, asked=asked)
        return seen._replace(data=not volume.anonymous) if seen is not None else None

    def _plain(
        self,
        kind: Kind,
        thing: Network | Volume,
        identifier: str,
        identity: Pairs,
        *,
        asked: bool,
    ) -> Sighting | None:
        """A thing that has no image: it is seen if it carries a mark, or was asked for."""
        record = self._known.records.get((kind, identity))
        read = read_labels(thing.labels, self._known.namespaces, {})
        claims = weigh(thing.labels, read, record, self._known, self._projects)
        seen = self._sighting(kind, thing, identifier, identity, claims, read.keep)
        if cluster_node(thing.labels) and record is None:
            return seen._replace(protections=(_NODE,)) if asked else None
        return seen if claims.marks or asked else None

    def _sighting(
        self,
        kind: Kind,
        thing: Container | Network | Volume,
        identifier: str,
        identity: Pairs,
        claims: Claims,
        keep: bool,  # noqa: FBT001 # one of many fields
    ) -> Sighting:
        return Sighting(
            kind=kind,
            id=identifier,
            name=thing.name,
            backend=self.holdings.backend,
            state="present",
            created_at=thing.created,
            identity=identity,
            marks=claims.marks,
            doubts=claims.doubts,
            kept=keep or (kind.value, identifier) in self._known.kept,
            record=claims.record,
            stack=claims.stack,
        )

    def spawned_by_localstack(self, seen: Iterable[Sighting]) -> Iterator[Sighting]:
        """Unmarked containers that a marked LocalStack seems to have started: shown only.

        Their names begin with the name of its main container, which is a hint and no proof.
        """
        listed = {sighting.id for sighting in seen}
        mains = [
            c.name
            for c in self.holdings.containers
            if c.id in listed and is_localstack(c.image_name)
        ]
        for container in self.holdings.containers:
            main = next((m for m in mains if container.name.startswith(f"{m}-lambda-")), None)
            if main is None or container.id in listed:
                continue
            identity = container_identity(container.id, self.holdings.daemon)
            doubt = f"looks like a Lambda of {main}, but carries no mark"
            claims = Claims((), (doubt,))
            yield self._sighting(
                Kind.CONTAINER, container, container.id, identity, claims, keep=False
            )._replace(state=container.state)
