"""Clusters of kind, k3d and minikube: asked of the tool, and of the engine that holds the nodes."""

from __future__ import annotations

import time

from corral.backends import _command
from corral.backends.cluster_nodes import Held, held
from corral.backends.cluster_sites import minikube_profiles, sites
from corral.backends.programs import find_program
from corral.contracts import ClusterSight
from corral.decide import clusters as rules
from corral.decide.cluster_tools import TOOLS, claim_scope, complaint
from corral.errors import EnumerationError, InvalidValueError
from corral.kernel.creators import at_work
from corral.model.environment import ClaimKind
from corral.model.resource import BackendState, Kind, Observation
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corral.backends.cluster_sites import Site
    from corral.backends.engine.endpoints import Endpoint
    from corral.contracts import RemovalContext, View
    from corral.decide.cluster_tools import ClusterTool, Listed
    from corral.model.record import Record
    from corral.model.report import Outcome
    from corral.model.resource import Judgement, Sighting

KINDS = frozenset({Kind.CLUSTER})
LOOK_SECONDS = 4.5  # a little less than every look is given, so that the reason is the tool's
_NOT_ASKED = "not asked: no node in its engine concerns corral"


class Found(NamedTuple):
    """What one look found: the facts, the engines that answered, words on how it went."""

    facts: rules.Facts
    engines: Mapping[str, Endpoint]
    detail: str


def cluster_backends(
    tool: str, environ: Mapping[str, str], home: str, places: Iterable[str] = ()
) -> tuple[ClusterBackend, ...]:
    """A backend for the engine that the tool uses now, and one for each that records lead to."""
    return tuple(
        ClusterBackend(TOOLS[tool], site, home) for site in sites(tool, environ, home, places)
    )


class ClusterTools:
    """The tools that make clusters, each in the place that the variables of a call lead to."""

    def __init__(self, environ: Mapping[str, str], home: str) -> None:
        self._environ = environ
        self._home = home

    def sight(self, view: View, tool: str, name: str) -> ClusterSight:
        """The cluster of that name. Raises EnumerationError where that cannot be told."""
        (backend,) = cluster_backends(tool, self._environ, self._home)
        return backend.sight(view, name)


class ClusterBackend:
    """The clusters of one tool in one place; `place` leads there again from a record."""

    kinds = KINDS

    def __init__(self, tool: ClusterTool, site: Site, home: str) -> None:
        self.tool = tool
        self.site = site
        self.name = site.name
        self.place = site.place
        self.program = find_program(tool.name, site.environ)
        self._home = home

    def observe(self, view: View) -> Observation:
        """Every cluster that concerns corral."""
        known = self.known(view)
        found = self.look(view, known)
        facts = found.facts
        if facts.nodes is None and facts.listed is None:
            return Observation(self.name, BackendState.ABSENT, found.detail)
        seen = rules.sightings(facts, known)
        gone = rules.gone(facts, known)
        return Observation(self.name, BackendState.OK, found.detail, seen, gone)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """The cluster of that name, or "TOOL/NAME", marked or not."""
        del kind
        known = self.known(view)
        found = self.look(view._replace(wide=True), known)
        return rules.exactly(found.facts, known, identifier)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Delete the clusters with their tool, or node by node where the tool is not here."""
        from corral.backends.cluster_removal import remove

        return remove(self, targets, context)

    def sight(self, view: View, name: str) -> ClusterSight:
        """The cluster of exactly that name. Raises EnumerationError where that cannot be told."""
        known = self.known(view)
        found = self.look(view._replace(wide=True), known)
        if found.facts.listed is None and self.program:
            raise EnumerationError(found.detail, backend=self.name)
        sighting = rules.exactly(found.facts, known, name)
        identity = sighting.identity if sighting is not None else None
        return ClusterSight(self.tool.name, self.place, identity)

    def look(self, view: View, known: rules.Known) -> Found:
        """What tool and engine say.

        Raises EnumerationError when one of them could not be asked and it matters.
        """
        deadline = time.monotonic() + LOOK_SECONDS
        nodes = self._nodes(self.site.endpoints, known.namespaces, deadline)
        if nodes.nodes is None:
            self._must_not_be_needed(known, nodes.reason)
        if not self.program:
            reason = nodes.reason or f"{self.tool.name} is not installed; its nodes are seen"
            return self._found(None, nodes, reason)
        if nodes.nodes is not None and not self._concerns(view, known, nodes.nodes):
            return self._found({}, nodes, _NOT_ASKED)
        try:
            listed = self.list_clusters(deadline)
        except EnumerationError as error:
            if nodes.nodes is None and not known.records:
                return self._found(None, nodes, error.message)
            raise
        nodes = self._completed(nodes, listed, known, deadline)
        return self._found(listed, nodes, f"{len(listed)} clusters")

    def list_clusters(self, deadline: float) -> dict[str, Listed]:
        """All clusters of the tool by name. Raises EnumerationError in the tool's own words."""
        tool = self.tool
        seconds = max(0.1, deadline - time.monotonic())
        try:
            done = _command.run(tool.list_command(), timeout=seconds, env=self.site.environ)
        except _command.ProgramMissingError as error:
            raise EnumerationError(error.message, backend=self.name) from error
        what = " ".join(tool.list_command())
        if done.returncode:
            words = complaint(done.stderr) or f"exit {done.returncode}"
            raise EnumerationError(f"{what}: {words}", backend=self.name, remedy=f"try: {what}")
        try:
            return {found.name: found for found in tool.parse(done.stdout)}
        except InvalidValueError as error:
            raise EnumerationError(
                f"{what} printed what is not understood: {error.message}", backend=self.name
            ) from error

    def known(self, view: View) -> rules.Known:
        """What the registry knows that bears on this tool in this place."""
        records = tuple(r for r in view.records if self._is_mine(r))
        environments = view.world.environments
        spaces = (view.namespace, *(e.environment.namespace for e in environments.values()))
        scope = claim_scope(self.tool.name)
        return rules.Known(
            records,
            {
                c.value: c.environment
                for c in view.claims
                if c.kind is ClaimKind.NAME and c.scope == scope and c.environment
            },
            frozenset(view.world.sessions),
            frozenset(environments),
            tuple(dict.fromkeys(spaces)),
            frozenset(r.id for r in records if at_work(r)),
        )

    def _is_mine(self, record: Record) -> bool:
        if record.kind is not Kind.CLUSTER or _family(record.backend) != self.tool.name:
            return False
        place = place_of(record)
        if not place:
            return self.name == self.tool.name
        return place == self.place or place in self.site.others

    def _nodes(
        self, endpoints: Sequence[Endpoint], namespaces: tuple[str, ...], deadline: float
    ) -> Held:
        try:
            return held(endpoints, self.site.environ, self.tool.label, namespaces, deadline)
        except EnumerationError as error:
            raise EnumerationError(error.message, backend=self.name) from error

    def _must_not_be_needed(self, known: rules.Known, reason: str) -> None:
        """Raise where an engine that cannot be asked is recorded to hold nodes of ours."""
        if any(rules.node_ids(record.identity) for record in known.records):
            if self.site.spare is not None:
                return  # its program will serve it
            words = f"{reason}, and nodes of a recorded cluster are there"
            raise EnumerationError(words, backend=self.name)

    def _concerns(
        self, view: View, known: rules.Known, nodes: Mapping[str, tuple[rules.Node, ...]]
    ) -> bool:
        """Whether the tool may know of something: a question costs a process of its own."""
        if view.wide or known.records or known.claims:
            return True
        names = {*nodes}
        if self.tool.name == "minikube":
            names.update(minikube_profiles(self.site.environ, self._home))
        marked = (node for each in nodes.values() for node in each if any(node.named))
        return any(rules.session_in(n, known.namespaces) for n in names) or any(marked)

    def _completed(
        self, nodes: Held, listed: Mapping[str, Listed], known: rules.Known, deadline: float
    ) -> Held:
        """The nodes with those of a Podman that no socket leads to, where it may have any."""
        spare = self.site.spare
        about = {rules.name_of(record) for record in known.records} | known.claims.keys()
        ours = (c for n, c in listed.items() if n in about or rules.session_in(n, known.namespaces))
        if spare is None or not any(c.driver in {"", spare.name} for c in ours):
            return nodes
        more = self._nodes([spare], known.namespaces, deadline)
        if more.nodes is None:
            return nodes
        together = {**(nodes.nodes or {}), **more.nodes}
        return Held(together, {**nodes.engines, **more.engines})

    def _found(self, listed: dict[str, Listed] | None, nodes: Held, detail: str) -> Found:
        engine = ", ".join(e.url for e in self.site.endpoints) or self.site.provider
        facts = rules.Facts(
            self.tool.name,
            self.name,
            listed,
            nodes.nodes,
            f"the engine at {engine}",
            frozenset(nodes.engines),
        )
        return Found(facts, nodes.engines, detail)


def place_of(record: Record) -> str:
    """The place that a record leads to, "" where it does not say."""
    import json

    try:
        place = json.loads(record.detail).get("place", "")
    except (ValueError, AttributeError):  # the registry shows it as a bad record
        return ""
    return place if isinstance(place, str) else ""


def _family(name: str) -> str:
    return name.partition(":")[0]
