"""The only place where services meet backends."""

from __future__ import annotations

import os
import sys

from corral.backends.containers import ContainerEngines, container_backends
from corral.backends.files import FileBackend
from corral.backends.processes import ProcessBackend
from corral.backends.programs import FIRECRACKER, AbsentBackend, find_program
from corral.decide.spelling import did_you_mean
from corral.errors import UsageError
from corral.model.environment import ClaimKind
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.store import claims, records, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corral.backends._command import Completed
    from corral.contracts import Backend, Clusters, Engines
    from corral.services.context import Context

CLUSTER_TOOLS = ("kind", "k3d", "minikube")
_ENGINES = frozenset({"docker", "podman"})


class _Traces(NamedTuple):
    """What the registry leads to: names of backends, places of engines and of clusters.

    `claimed`: the scopes in which names are claimed.
    """

    backends: frozenset[str]
    engines: tuple[tuple[str, str], ...]
    clusters: tuple[tuple[str, str], ...]
    claimed: frozenset[str]


def _traces(context: Context) -> _Traces:
    with context.registry.read() as conn:
        names = frozenset(_family(name) for name in records.backends(conn))
        places = [(_family(name), place) for name, place in records.places(conn)]
        claimed = frozenset(claims.scopes(conn, ClaimKind.NAME))
    engines_ = tuple(p for p in places if p[0] in _ENGINES)
    clusters_ = tuple(p for p in places if p[0] in CLUSTER_TOOLS)
    return _Traces(names, engines_, clusters_, claimed)


def backends(context: Context, only: Sequence[str] = ()) -> tuple[Backend, ...]:
    """Every backend, or those named in `only`; UsageError for a name that is none.

    A name also stands for all that are called "name:PLACE".
    """
    home, traces = os.path.expanduser("~"), _traces(context)
    every: tuple[Backend, ...] = (
        ProcessBackend(),
        _of_microvms(context, traces),
        *_of_clusters(context, home, traces),
        *container_backends(context.environ, home, traces.engines),
        _of_apple(context, traces),
        FileBackend(),
    )
    known = {b.name for b in every} | {_family(b.name) for b in every}
    for name in only:
        if name not in known:
            raise UsageError(
                f"there is no backend {name!r}{did_you_mean(name, known)}",
                remedy=f"the backends are: {', '.join(b.name for b in every)}",
            )
    return tuple(b for b in every if not only or b.name in only or _family(b.name) in only)


def _of_microvms(context: Context, traces: _Traces) -> Backend:
    """Firecracker's; nothing is imported where no microVM was ever started through corral."""
    if FIRECRACKER not in traces.backends and not os.path.isdir(
        statedir.run_dir(context.state_dir)
    ):
        kinds = frozenset({Kind.MICROVM, Kind.DIRECTORY})
        return AbsentBackend(FIRECRACKER, kinds, "no microVM was started through corral")
    from corral.backends.firecracker import FirecrackerBackend

    return FirecrackerBackend()


def _of_clusters(context: Context, home: str, traces: _Traces) -> Iterator[Backend]:
    """The tools that make clusters; one that is not here and nothing leads to costs nothing."""
    for tool in CLUSTER_TOOLS:
        needed = tool in traces.backends or f"cluster:{tool}" in traces.claimed
        if not needed and not find_program(tool, context.environ):
            yield AbsentBackend(tool, frozenset({Kind.CLUSTER}), f"{tool} is not installed")
            continue
        from corral.backends.clusters import cluster_backends

        places = [place for name, place in traces.clusters if name == tool]
        yield from cluster_backends(tool, context.environ, home, places)


def _of_apple(context: Context, traces: _Traces) -> Backend:
    """Apple's `container`; nothing is imported where it cannot be."""
    reason = "only macOS has it"
    if sys.platform == "darwin":
        if "apple" in traces.backends or find_program("container", context.environ):
            from corral.backends.apple import AppleBackend

            return AppleBackend(context.environ)
        reason = "container is not installed"
    return AbsentBackend("apple", frozenset({Kind.CONTAINER, Kind.NETWORK}), reason)


def engines(context: Context) -> Engines:
    """The container engines, for what `corral run` asks of them."""
    home = os.path.expanduser("~")
    return ContainerEngines(context.environ, home, _traces(context).engines)


def clusters(context: Context) -> Clusters:
    """The tools that make clusters, for what `corral run` asks of them."""
    from corral.backends.clusters import ClusterTools

    return ClusterTools(context.environ, os.path.expanduser("~"))


def _family(name: str) -> str:
    return name.partition(":")[0]


def run_program(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Completed:
    """Run a program through the one door; the door is opened only when it is needed."""
    from corral.backends import _command

    return _command.run(argv, timeout=timeout, env=env, cwd=cwd)
