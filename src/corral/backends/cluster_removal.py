"""Deleting clusters: by their tool, else node by node; done is what tool and engine no longer have.

The tools end well although something is left (minikube swallows what docker says, k3d warns only),
so their word counts for nothing.
"""

from __future__ import annotations

import os
import time

from corral.backends import _command
from corral.backends.engine.changing import Said, already_gone, change, deadline, each
from corral.decide import clusters as rules
from corral.decide.cluster_tools import complaint
from corral.errors import EnumerationError
from corral.model.report import Outcome
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.backends.clusters import ClusterBackend, Found
    from corral.contracts import RemovalContext
    from corral.model.resource import Judgement, Sighting

_PATIENCE = 5.0  # for what the tool or the engine is still taking away
_PAUSE = 0.2
_LONGEST = 300.0  # a cluster of many nodes on a slow disk


def remove(
    backend: ClusterBackend, targets: Sequence[Judgement], context: RemovalContext
) -> tuple[Outcome, ...]:
    """One outcome for each target. Raises EnumerationError when the look before it fails."""
    removal = _Removal(backend, context)
    removal.look()
    return tuple(each(targets, context, removal.act))


class _Removal:
    def __init__(self, backend: ClusterBackend, context: RemovalContext) -> None:
        self._backend = backend
        self._context = context
        self._view = context.view._replace(wide=True)
        self._known = backend.known(self._view)
        self._found: Found | None = None

    def look(self) -> Found:
        """A fresh look, also at what the tool has."""
        self._found = self._backend.look(self._view, self._known)
        return self._found

    def act(self, target: Judgement) -> Outcome:
        """Delete one cluster that is still exactly the one that was judged."""
        found = self._found or self.look()
        fresh = self._exactly(found, target)
        if fresh is None:
            return already_gone(target)
        if fresh.identity != target.sighting.identity:
            return Outcome(target.sighting, "left", "its nodes are others now than were shown")
        if fresh.doubts:
            return Outcome(target.sighting, "left", fresh.doubts[0])
        words = self._by_tool(target) if self._backend.program else self._by_nodes(found, target)
        return self._verified(target, words)

    def _exactly(self, found: Found, target: Judgement) -> Sighting | None:
        return rules.exactly(found.facts, self._known, target.sighting.name)

    def _by_tool(self, target: Judgement) -> str:
        """Let the tool delete it; its complaint, "" for none."""
        backend = self._backend
        kubeconfig = self._kubeconfig(target)
        environ = dict(backend.site.environ)
        if kubeconfig:
            environ["KUBECONFIG"] = kubeconfig
        command = backend.tool.delete_command(target.sighting.name, kubeconfig)
        seconds = deadline(self._context, _LONGEST) - time.monotonic()
        try:
            done = _command.run(command, timeout=seconds, env=environ)
        except (EnumerationError, _command.ProgramMissingError) as error:
            # It hung, printed without end, or was taken away: what is left will be seen.
            return error.message
        if done.returncode == 0:
            return ""
        return f"{' '.join(command[:3])}: {complaint(done.stderr) or f'exit {done.returncode}'}"

    def _by_nodes(self, found: Found, target: Judgement) -> str:
        """Remove its node containers by their ids; networks are others', too, and stay."""
        from corral.backends.engine.client import Engine

        complaints = []
        nodes = (found.facts.nodes or {}).get(target.sighting.name, ())
        for node in nodes:
            endpoint = found.engines[node.daemon]
            with Engine(endpoint, self._backend.site.environ) as engine:
                said, words = change(engine, "DELETE", f"/containers/{node.id}?force=1&v=1")
            if said in {Said.BUSY, Said.FAILED}:
                complaints.append(words)
        return "; ".join(dict.fromkeys(complaints))

    def _kubeconfig(self, target: Judgement) -> str:
        """The private kubeconfig that it was made with; "" for one that was made by hand."""
        for record in self._known.records:
            if record.id == target.sighting.record:
                path = recorded(record.detail, "kubeconfig")
                return path if path and os.path.isdir(os.path.dirname(path)) else ""
        environment = self._known.claims.get(target.sighting.name)
        if environment is None:
            return ""
        path = statedir.kubeconfig(self._view.state_dir, environment)
        return path if os.path.lexists(path) else ""

    def _verified(self, target: Judgement, words: str) -> Outcome:
        """Look until neither the tool nor the engine has it; what still does is said."""
        until = deadline(self._context, _PATIENCE)
        while True:
            try:
                found = self._backend.look(self._view, self._known)
            except EnumerationError as error:
                reason = f"{words}; " if words else ""
                reason += f"its end could not be verified: {error.message}"
                return Outcome(target.sighting, "remaining", reason)
            where = _where(found, target.sighting.name)
            if not where:
                return Outcome(target.sighting, "removed", "removed")
            if words or time.monotonic() >= until:
                reason = words or f"{self._backend.tool.name} deleted it without complaint"
                return Outcome(target.sighting, "remaining", f"{reason}, and {where}")
            time.sleep(_PAUSE)


def _where(found: Found, name: str) -> str:
    """Who still has the cluster, in words."""
    facts = found.facts
    places = []
    if name in (facts.listed or {}):
        places.append(f"{facts.tool} still lists it")
    nodes: Sequence[rules.Node] = (facts.nodes or {}).get(name, ())
    if nodes:
        ids = ", ".join(node.id[:12] for node in nodes)
        places.append(f"{facts.engine} still has its nodes ({ids})")
    return " and ".join(places)


def recorded(detail: str, key: str) -> str:
    """A text in a record's detail, "" where there is none."""
    import json

    try:
        found: Mapping[str, object] = json.loads(detail)
    except ValueError:  # the registry shows it as a bad record
        return ""
    value = found.get(key, "")
    return value if isinstance(value, str) else ""
