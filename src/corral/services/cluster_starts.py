"""Clusters that `corral run -- kind create cluster` and its like bring into being.

The intent is written together with the fact that no cluster of that name was there: this is what
makes the name a proof later. A name of corral's own is claimed in the same way, and handed to the
tools as a variable or a word; the kubeconfig is the environment's own, so that nobody's
`~/.kube/config` is written to.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial

from corral.decide import naming
from corral.decide.cluster_calls import read_cluster_call, with_cluster
from corral.decide.cluster_tools import TOOLS, claim_scope
from corral.decide.clusters import name_of
from corral.errors import EnumerationError, HeldError
from corral.kernel import identity
from corral.kernel.creators import at_work
from corral.model.environment import ClaimKind
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.services import lifecycle
from corral.services.announcing import Announced
from corral.services.claiming import Claimant, names_for
from corral.services.databases import own_directory
from corral.services.engine_starts import Worker, labels_of
from corral.services.running import details
from corral.services.service_records import new_record_id
from corral.services.view import look
from corral.store import claims, records, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

    from corral.contracts import Clusters, ClusterSight
    from corral.decide.cluster_calls import ClusterCall
    from corral.decide.cluster_tools import ClusterTool
    from corral.services.context import Context
    from corral.services.launching import Launch

ROLE = "cluster"


class _Start(NamedTuple):
    """One start: by which tool, and what leads to the clusters that are there."""

    context: Context
    launch: Launch
    call: ClusterCall
    tool: ClusterTool
    clusters: Clusters

    def sight(self, name: str) -> ClusterSight:
        """Whether a cluster of that name is there. Raises EnumerationError."""
        return self.clusters.sight(look(self.context), self.tool.name, name)


def announce(context: Context, launch: Launch, clusters: Callable[[], Clusters]) -> Announced:
    """The launch with the cluster's name and kubeconfig, and the intent written down.

    Raises EnumerationError where nobody can tell whether the cluster is there already, HeldError
    for a name that another environment has claimed; nothing was written then.
    """
    call = read_cluster_call(launch.request.argv)
    if call is not None and call.unclear:
        return Announced(launch, (_unclear(call),))
    if call is None or not call.creates:
        return Announced(launch)
    start = _Start(context, launch, call, TOOLS[call.tool], clusters())
    own_directory(context, launch.environment)
    with lifecycle.hold(context.state_dir, what="run"):
        name = _named(start) or _claimed(start)
        record, words = _write_down(start, name, start.sight(name))
    told = _told(start, name)
    if not record:
        return Announced(told, words)
    return Announced(told, words, partial(_settle, start, name, record))


def _unclear(call: ClusterCall) -> str:
    return (
        f"the option {call.unclear} of {call.tool} is not known, so no cluster is recorded; "
        "afterwards: corral adopt cluster NAME"
    )


def _named(start: _Start) -> str:
    """The name that the user chose, "" for none; an inherited one of another environment's is none.

    Raises HeldError for a name on the command line that another environment has claimed.
    """
    scope = claim_scope(start.tool.name)
    inherited = start.context.environ.get(start.tool.variable, "") if start.tool.variable else ""
    name = start.call.name or inherited
    if not name:
        return ""
    with start.context.registry.read() as conn:
        claim = claims.find(conn, ClaimKind.NAME, scope, name)
    if claim is None or claim.environment == start.launch.environment.id:
        return name
    if start.call.name:
        raise HeldError(
            f"the name {name} is claimed by the environment {claim.environment}",
            remedy="choose another name, or none: then this environment's own is used",
            resource=name,
        )
    return ""


def _claimed(start: _Start) -> str:
    """The environment's own name for a cluster; claimed only while no cluster has it."""
    environment, scope = start.launch.environment, claim_scope(start.tool.name)
    with start.context.registry.read() as conn:
        for claim in claims.of_environment(conn, environment.id):
            if claim.kind is ClaimKind.NAME and claim.scope == scope:
                return claim.value
    claimant = Claimant(environment.id, None, start.launch.acting.owner)
    detail = json.dumps({"kubeconfig": _kubeconfig(start)})
    for name in names_for(environment, naming.CLUSTER):
        if start.sight(name).identity is not None:
            continue
        with start.context.registry.write() as conn:
            if claims.take(conn, claimant.claim(ClaimKind.NAME, scope, name, scope, detail)):
                return name
    raise HeldError(f"no name is left for a cluster of {start.tool.name}", remedy="give --name")


def _kubeconfig(start: _Start) -> str:
    if start.call.kubeconfig:
        return os.path.abspath(start.call.kubeconfig)
    return statedir.kubeconfig(start.context.state_dir, start.launch.environment.id)


def _told(start: _Start, name: str) -> Launch:
    """The launch whose tool knows the name and the kubeconfig."""
    launch, tool = start.launch, start.tool
    environ = dict(launch.environ)
    if tool.variable:
        environ[tool.variable] = name
    if not start.call.kubeconfig:
        environ["KUBECONFIG"] = _kubeconfig(start)
    worker = Worker(launch.acting, launch.environment)
    labels = labels_of(worker, start.context.settings.namespace)
    argv = with_cluster(launch.request.argv, start.call, name, labels)
    return launch._replace(request=launch.request._replace(argv=argv), environ=environ)


def _write_down(start: _Start, name: str, sight: ClusterSight) -> tuple[str, tuple[str, ...]]:
    """The id of the intent ("" for a cluster that is not new), and words for a person."""
    owner = start.launch.acting.owner
    with start.context.registry.write() as conn:
        known = [r for r in records.of_kind(conn, Kind.CLUSTER) if _is_about(r, name, sight)]
        busy = next((r for r in known if at_work(r)), None)
        if busy is not None:
            return "", (f"a cluster {name} is being created already, by owner {busy.owner}",)
        if sight.identity is None:
            for stale in known:
                records.delete(conn, stale.id)
            return _intent(conn, start, name, sight), ()
    if any(r.owner == owner for r in known) or _is_own_name(start, name):
        return "", ()
    return "", (f"a cluster {name} was there before, so corral will not take it down",)


def _is_about(record: Record, name: str, sight: ClusterSight) -> bool:
    return (
        name_of(record) == name
        and record.backend.partition(":")[0] == sight.tool
        and details(record).get("place", "") == sight.place
    )


def _is_own_name(start: _Start, name: str) -> bool:
    with start.context.registry.read() as conn:
        claim = claims.find(conn, ClaimKind.NAME, claim_scope(start.tool.name), name)
    return claim is not None and claim.environment == start.launch.environment.id


def _intent(conn: Connection, start: _Start, name: str, sight: ClusterSight) -> str:
    launch = start.launch
    record = Record(
        id=new_record_id(),
        kind=Kind.CLUSTER,
        backend=start.tool.name,
        role=ROLE,
        name=name,
        owner=launch.acting.owner,
        session=launch.acting.session,
        environment=launch.environment.id,
        state=RecordState.INTENT,
        identity=(),
        creator=identity.own_identity(),
        created_at=time.time(),
        detail=json.dumps({"place": sight.place, "kubeconfig": _kubeconfig(start)}),
    )
    records.insert(conn, record)
    return record.id


def _settle(start: _Start, name: str, record: str) -> tuple[str, ...]:
    """Pin the cluster that came of it, or drop the intent of one that did not."""
    try:
        sight = start.sight(name)
    except EnumerationError as error:
        # The intent stays: it says whose a cluster of that name is.
        return (f"what became of the cluster {name} could not be seen: {error.message}",)
    with start.context.registry.write() as conn:
        if sight.identity is None:
            records.delete(conn, record)
        elif records.find(conn, record) is not None:
            records.pin(conn, record, sight.identity)
    return ()
