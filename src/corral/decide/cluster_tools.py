"""kind, k3d and minikube: one row each, where only commands, names and listings differ.

Sources: the documentation and the source of the three tools.
"""

from __future__ import annotations

import re

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Whatever a tool would not take as a name is no line of its listing.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_NO_KIND_CLUSTERS = "No kind clusters found."
_MINIKUBE_EXIT = "Exiting due to"
_SECRET = re.compile(
    r"""((?:token|password|secret|key-data|authority-data)["']?(?:\s*[:=]\s*|\s+)["']?)"""
    r"""[^\s"',;}]+""",
    re.IGNORECASE,
)


class Listed(NamedTuple):
    """One cluster as its tool lists it; `state` and `driver` are "" where the tool says nothing."""

    name: str
    state: str = ""
    driver: str = ""


class ClusterTool(NamedTuple):
    """One tool. `label`: of its node containers, names the cluster. `variable`: names a cluster.

    `listing`, `deleting` and `kubeconfig` are words behind the program's name; `{name}` and
    `{file}` stand for the cluster and the kubeconfig.
    """

    name: str
    label: str
    variable: str
    listing: tuple[str, ...]
    deleting: tuple[str, ...]
    kubeconfig: tuple[str, ...]
    parse: Callable[[str], tuple[Listed, ...]]

    def list_command(self) -> tuple[str, ...]:
        """The command line that lists all clusters."""
        return (self.name, *self.listing)

    def delete_command(self, cluster: str, kubeconfig: str) -> tuple[str, ...]:
        """The command line that deletes one cluster; `kubeconfig` "" leaves that to the tool."""
        words = (*self.deleting, *(self.kubeconfig if kubeconfig else ()))
        places = {"{name}": cluster, "{file}": kubeconfig}
        return (self.name, *(places.get(word, word) for word in words))


def _kind(text: str) -> tuple[Listed, ...]:
    lines = [line.strip() for line in text.splitlines()]
    return _all_named(line for line in lines if line not in {"", _NO_KIND_CLUSTERS})


def _k3d(text: str) -> tuple[Listed, ...]:
    return tuple(_k3d_cluster(entry) for entry in _sequence(_json(text)))


def _k3d_cluster(entry: Any) -> Listed:
    (found,) = _all_named([_field(entry, "name")])
    running = _field(entry, "serversRunning", 0)
    return found._replace(state="running" if running else "stopped")


def _minikube(text: str) -> tuple[Listed, ...]:
    answer = _json(text)
    if _field(answer, "error", None) is not None:
        raise InvalidValueError("it says that its profiles cannot be listed")
    found = []
    for group in ("valid", "invalid"):
        for entry in _sequence(_field(answer, group)):
            (named,) = _all_named([_field(entry, "Name")])
            config = _field(entry, "Config", None) or {}
            state = str(_field(entry, "Status", "") or group).lower()
            found.append(named._replace(state=state, driver=str(_field(config, "Driver", ""))))
    return tuple(found)


def _all_named(names: Iterable[Any]) -> tuple[Listed, ...]:
    found = []
    for name in names:
        if not isinstance(name, str) or not is_name(name):
            raise InvalidValueError("something in it is no name of a cluster")
        found.append(Listed(name))
    return tuple(found)


def _json(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError("it is no JSON") from error


_MISSING = object()


def _field(entry: Any, key: str, default: Any = _MISSING) -> Any:
    value = entry.get(key, default) if isinstance(entry, dict) else _MISSING
    if value is _MISSING:
        raise InvalidValueError(f"something in it has no {key}")
    return value


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValueError("it holds no list where one is documented")
    return value


KIND = ClusterTool(
    "kind",
    "io.x-k8s.kind.cluster",
    "KIND_CLUSTER_NAME",
    ("get", "clusters"),
    ("delete", "cluster", "--name", "{name}"),
    ("--kubeconfig", "{file}"),
    _kind,
)
K3D = ClusterTool(
    "k3d",
    "k3d.cluster",
    "",
    ("cluster", "list", "-o", "json"),
    ("cluster", "delete", "{name}"),
    (),
    _k3d,
)
MINIKUBE = ClusterTool(
    "minikube",
    "name.minikube.sigs.k8s.io",
    "MINIKUBE_PROFILE",
    ("profile", "list", "-o", "json"),
    ("delete", "-p", "{name}"),
    (),
    _minikube,
)
TOOLS: dict[str, ClusterTool] = {tool.name: tool for tool in (KIND, K3D, MINIKUBE)}


def is_name(text: str) -> bool:
    """Whether a tool would take this as the name of a cluster; never an option."""
    return _NAME.fullmatch(text) is not None


def complaint(stderr: str) -> str:
    """What a tool says of its failure, without secrets; "" where it says nothing.

    minikube draws a box below its words, so lines without letters do not count.
    """
    lines = [line.strip() for line in stderr.splitlines() if any(c.isalpha() for c in line)]
    exits = [line for line in lines if _MINIKUBE_EXIT in line]
    return without_secrets((exits or lines or [""])[-1])


def claim_scope(tool: str) -> str:
    """The scope in which the names of a tool's clusters are claimed."""
    return f"cluster:{tool}"


def without_secrets(text: str) -> str:
    """A tool's own words with every token, password and key in them covered."""
    return _SECRET.sub(r"\1***", text)
