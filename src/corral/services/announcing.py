"""Commands whose tools bring more into being than processes: announced before, settled after."""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.contracts import Clusters
    from corral.services.context import Context
    from corral.services.launching import Launch


_CLUSTER_TOOLS = frozenset({"kind", "k3d", "minikube"})
_MICROVMS = "firecracker"


def _nothing() -> tuple[str, ...]:
    return ()


class Announced(NamedTuple):
    """What is to be launched, words for a person, and what to do once the command has ended.

    `settle` records what came of the command and returns words; it may be called when the command
    could not be started at all.
    """

    launch: Launch
    words: tuple[str, ...] = ()
    settle: Callable[[], tuple[str, ...]] = _nothing


def announce(
    context: Context, launch: Launch, clusters: Callable[[], Clusters] | None = None
) -> Announced:
    """Write the intent of what the command is about to create, and tell its tool the names.

    Raises EnumerationError where nobody can tell whether it is there already, HeldError and
    RegistryError: nothing was written then, and nothing may be started.
    """
    program = launch.request.argv[0].rpartition("/")[2]
    if program in _CLUSTER_TOOLS and clusters is not None:
        from corral.services import cluster_starts

        return cluster_starts.announce(context, launch, clusters)
    if program.startswith(_MICROVMS):
        from corral.services import microvm_starts

        return microvm_starts.announce(context, launch)
    return Announced(launch)
