"""The node containers of a tool's clusters, as the engines that the tool uses hold them."""

from __future__ import annotations

from corral.backends.engine import looking
from corral.backends.engine.client import Engine
from corral.backends.engine.labels import carries, read_labels
from corral.backends.engine.states import EngineAbsentError, EngineDeniedError, EngineDownError
from corral.decide.cluster_tools import is_name
from corral.decide.clusters import Node
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.backends.engine.endpoints import Endpoint
    from corral.backends.engine.labels import Labels
    from corral.backends.engine.views import Container

_ROLE, _NO_ROLE = "k3d.role", "noRole"


class Held(NamedTuple):
    """What the engines hold: nodes by cluster, None where no engine can be asked, and why.

    `engines`: those that answered, by what names each for good.
    """

    nodes: Mapping[str, tuple[Node, ...]] | None
    engines: Mapping[str, Endpoint]
    reason: str = ""


def held(
    endpoints: Sequence[Endpoint],
    environ: Mapping[str, str],
    label: str,
    namespaces: tuple[str, ...],
    deadline: float,
) -> Held:
    """The nodes in all of these engines that answer. `deadline` is on the monotonic clock.

    Raises EnumerationError for an engine that is there and does not answer as it should.
    """
    found: dict[str, tuple[Node, ...]] = {}
    engines: dict[str, Endpoint] = {}
    reasons = []
    for endpoint in endpoints:
        try:
            with Engine(endpoint, environ) as engine:
                daemon, nodes = _of_engine(engine, label, namespaces, deadline)
        except (EngineAbsentError, EngineDeniedError, EngineDownError) as error:
            reasons.append(error.message)
            continue
        engines[daemon] = endpoint
        for name, more in nodes.items():
            found[name] = found.get(name, ()) + more
    if not engines:
        return Held(None, {}, "; ".join(reasons) or "no engine is known")
    return Held(found, engines)


def _of_engine(
    engine: Engine, label: str, namespaces: tuple[str, ...], deadline: float
) -> tuple[str, dict[str, tuple[Node, ...]]]:
    # A label that no tool could have given names no cluster, and least of all an option.
    every = looking.containers(engine, deadline)
    nodes = [c for c in every if is_name(c.labels.get(label, ""))]
    marked = {c.image for c in nodes if c.image and carries(c.labels, namespaces)}
    images = looking.image_labels(engine, sorted(marked), deadline)
    daemon = looking.daemon(engine, deadline)
    found: dict[str, tuple[Node, ...]] = {}
    for container in sorted(nodes, key=lambda c: c.id):
        own = images.get(container.image, {})
        # An image that is gone may have handed the labels on: then they prove nothing.
        read = read_labels(container.labels, namespaces, container.labels if own is None else own)
        name = container.labels[label]
        found[name] = (*found.get(name, ()), _node(container, daemon, read))
    return daemon, found


def _node(container: Container, daemon: str, read: Labels) -> Node:
    return Node(
        container.id,
        container.state,
        container.created,
        daemon,
        (read.owner, read.session, read.environment),
        keep=read.keep,
        counts=container.labels.get(_ROLE) != _NO_ROLE,
    )
