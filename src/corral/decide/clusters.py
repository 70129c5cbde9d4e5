"""Whose clusters are: what a tool lists and what engines hold, joined with what is recorded.

A cluster is seen only for a reason: a record, a claimed name, the name of a session, or labels on
all of its nodes. Anybody else's is not even listed. Where the tool and the engine tell different
things, nobody can say what a removal would do, so that is a doubt that names both.
"""

from __future__ import annotations

from corral.model.resource import Kind, Mark, Proof, Sighting
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corral.decide.cluster_tools import Listed
    from corral.model.record import Record

Pairs = tuple[tuple[str, str | int], ...]
_SHORT = 12
_RUNNING = "running"
# Other drivers of minikube make virtual machines, of which an engine knows nothing.
_MACHINES = frozenset({"minikube"})
_IN_CONTAINERS = frozenset({"", "docker", "podman"})


class Node(NamedTuple):
    """One node container. `named`: the owner, session and environment that its own labels name.

    `counts`: it belongs to the cluster for good, unlike what a tool starts for a moment.
    `daemon` names its engine for good.
    """

    id: str
    state: str
    created: float | None
    daemon: str = ""
    named: tuple[str | None, str | None, str | None] = (None, None, None)
    keep: bool = False
    counts: bool = True


class Facts(NamedTuple):
    """What one look found. `listed` None: the tool is not here; `nodes` None: no engine is.

    `engine` is for words, `daemons` name the engines that answered for good.
    """

    tool: str
    backend: str
    listed: Mapping[str, Listed] | None
    nodes: Mapping[str, tuple[Node, ...]] | None
    engine: str = ""
    daemons: frozenset[str] = frozenset()


class Known(NamedTuple):
    """What the registry knows that bears on the clusters of one tool in one place.

    `claims`: claimed names with their environments. `creating`: ids of records whose creators
    live. `environments`: those that exist.
    """

    records: tuple[Record, ...] = ()
    claims: Mapping[str, str] = {}
    sessions: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    namespaces: tuple[str, ...] = ()
    creating: frozenset[str] = frozenset()


def name_of(record: Record) -> str:
    """The cluster that a record is about: pinned, or as the intent names it."""
    return str(dict(record.identity).get("name", "")) or record.name


def node_ids(identity: Pairs) -> frozenset[str]:
    """The ids of the node containers in a pinned identity."""
    return frozenset(filter(None, str(dict(identity).get("nodes", "")).split(",")))


def session_in(name: str, namespaces: Iterable[str]) -> str:
    """The session id that a cluster's name spells, "" for any other name."""
    spelled = (name.removeprefix(f"{space}-") for space in namespaces)
    return next((rest for rest in spelled if rest and rest != name), "")


def sightings(facts: Facts, known: Known) -> tuple[Sighting, ...]:
    """Every cluster that concerns corral, and what records alone show."""
    look = _Look(facts, known)
    seen = [look.cluster(name) for name in sorted(look.names)]
    missing = [look.missing(r) for r in known.records if look.stands_alone(r)]
    return tuple(s for s in (*seen, *missing) if s is not None)


def exactly(facts: Facts, known: Known, wanted: str) -> Sighting | None:
    """The cluster of that name (or "TOOL/NAME"), marked or not."""
    look = _Look(facts, known)
    name = wanted.removeprefix(f"{facts.tool}/")
    return look.cluster(name, asked=True) if name in look.names else None


def gone(facts: Facts, known: Known) -> tuple[str, ...]:
    """The ids of records of which it is proven that they name nothing any more."""
    look = _Look(facts, known)
    return tuple(r.id for r in known.records if r.id not in known.creating and look.is_gone(r))


class _Look:
    def __init__(self, facts: Facts, known: Known) -> None:
        self.facts = facts
        self.known = known
        self.listed = facts.listed or {}
        self.nodes = facts.nodes or {}
        self.names = self.listed.keys() | self.nodes.keys()

    def cluster(self, name: str, *, asked: bool = False) -> Sighting | None:
        """What is seen of a cluster; one that nobody asked for needs a reason to be seen."""
        nodes = self.nodes.get(name, ())
        records = [r for r in self.known.records if self._means(r, name, nodes)]
        marks = self._marks(name, nodes, records)
        if not marks and not asked:
            return None
        listed = self.listed.get(name)
        born = [node.created for node in nodes if node.created is not None]
        doubts = (*self._disagreement(name, nodes), *_partly(nodes, marks))
        return Sighting(
            kind=Kind.CLUSTER,
            id=f"{self.facts.tool}/{name}",
            name=name,
            backend=self.facts.backend,
            state=_state(nodes, listed),
            created_at=min(born or [r.created_at for r in records], default=None),
            identity=self.identity(name, nodes),
            marks=marks,
            doubts=doubts if marks else (),
            kept=any(node.keep for node in nodes),
            creating=any(r.id in self.known.creating for r in records),
            record=records[0].id if records else None,
        )

    def identity(self, name: str, nodes: tuple[Node, ...]) -> Pairs:
        """What pins one cluster: ids of node containers are never given again."""
        ids = ",".join(sorted(node.id for node in nodes if node.counts))
        daemons = ",".join(sorted({node.daemon for node in nodes}))
        return (("name", name), ("nodes", ids), ("daemon", daemons))

    def _means(self, record: Record, name: str, nodes: tuple[Node, ...]) -> bool:
        """Whether a record is about exactly this cluster, not an earlier one of its name."""
        pinned = node_ids(record.identity)
        replaced = pinned and nodes and pinned.isdisjoint(node.id for node in nodes)
        return name_of(record) == name and not replaced

    def _marks(
        self, name: str, nodes: tuple[Node, ...], records: Iterable[Record]
    ) -> tuple[Mark, ...]:
        marks = [
            Mark(Proof.RECORDED, r.owner, None, self._existing(r.environment)) for r in records
        ]
        claimed = self.known.claims.get(name)
        if claimed is not None:
            marks.append(Mark(Proof.NAME, environment=claimed))
        session = session_in(name, self.known.namespaces)
        if session in self.known.sessions or (session and not marks):
            marks.append(Mark(Proof.NAME, session=session))
        for owner, session_id, environment in dict.fromkeys(node.named for node in nodes):
            if owner or session_id:
                where = self._existing(environment)
                marks.append(Mark(Proof.LABEL, owner, session_id, where))
        return tuple(dict.fromkeys(marks))

    def _existing(self, environment: str | None) -> str | None:
        """What names a worker stays the worker's when the environment beside it was given up."""
        return environment if environment in self.known.environments else None

    def _disagreement(self, name: str, nodes: tuple[Node, ...]) -> tuple[str, ...]:
        facts = self.facts
        if facts.listed is None or facts.nodes is None:
            return ()
        listed = facts.listed.get(name)
        if listed is None:
            ids = ", ".join(node.id[:_SHORT] for node in nodes)
            return (f"{facts.engine} has its nodes ({ids}), but {facts.tool} does not list it",)
        if not nodes and listed.driver in _IN_CONTAINERS:
            return (f"{facts.tool} lists it, but {facts.engine} has no node of it",)
        return ()

    def is_gone(self, record: Record) -> bool:
        """Whether everybody who could know of a record's cluster says that there is none."""
        if self._is_elsewhere(record):
            return False
        name = name_of(record)
        if name in self.names:
            return not self._means(record, name, self.nodes.get(name, ()))
        pinned = bool(node_ids(record.identity))
        if self.facts.nodes is not None and (pinned or self.facts.tool not in _MACHINES):
            return True
        return self.facts.listed is not None and not pinned

    def _is_elsewhere(self, record: Record) -> bool:
        """Whether its nodes were in an engine that does not answer here now."""
        daemons = str(dict(record.identity).get("daemon", ""))
        return bool(daemons) and self.facts.daemons.isdisjoint(daemons.split(","))

    def stands_alone(self, record: Record) -> bool:
        """Whether a record is all that is left to be shown."""
        name = name_of(record)
        if name in self.names and self._means(record, name, self.nodes.get(name, ())):
            return False
        return record.id in self.known.creating or not self.is_gone(record)

    def missing(self, record: Record) -> Sighting:
        """A cluster that is being created, or of which nobody here can tell."""
        creating = record.id in self.known.creating
        doubt = f"{self.facts.tool} is not here, so nobody can tell what became of it"
        if self._is_elsewhere(record):
            doubt = "recorded in another engine than the one that answers here now"
        return Sighting(
            kind=Kind.CLUSTER,
            id=f"{self.facts.tool}/{name_of(record)}",
            name=name_of(record),
            backend=self.facts.backend,
            state="creating" if creating else "unknown",
            created_at=record.created_at,
            identity=record.identity or (("record", record.id),),
            marks=(Mark(Proof.RECORDED, record.owner, None, self._existing(record.environment)),),
            doubts=(doubt,),
            creating=creating,
            record=record.id,
        )


def _state(nodes: tuple[Node, ...], listed: Listed | None) -> str:
    if nodes:
        return _RUNNING if any(node.state == _RUNNING for node in nodes) else nodes[0].state
    return (listed.state if listed is not None else "") or "present"


def _partly(nodes: tuple[Node, ...], marks: tuple[Mark, ...]) -> tuple[str, ...]:
    """A label on some of the nodes proves nothing: anybody can add a node to a cluster."""
    if any(mark.proof is not Proof.LABEL for mark in marks):
        return ()
    if len({node.named for node in nodes if node.counts}) > 1:
        return ("only some of its nodes carry the label",)
    return ()
