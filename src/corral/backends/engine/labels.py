"""The labels that say whose a thing is: corral's own, compose's, and those of other tools."""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COMPOSE = "com.docker.compose."
PROJECT = "com.docker.compose.project"
WORKING_DIR = "com.docker.compose.project.working_dir"
TESTCONTAINERS = "org.testcontainers.sessionId"
_TESTCONTAINERS_ANY = ("org.testcontainers", TESTCONTAINERS, "org.testcontainers.session-id")
_WORDS = ("owner", "session", "env")
_CLUSTER_TOOLS = ("io.x-k8s.kind.cluster", "k3d.cluster", "name.minikube.sigs.k8s.io")


class Labels(NamedTuple):
    """corral's labels on one thing, exactly as read; None where there is none or an empty one.

    What is `inherited` comes with the same value from the image, which hands it to every
    container that is made from it: it proves nothing. `keep`: it asks to be kept.
    """

    owner: str | None
    session: str | None
    environment: str | None
    inherited_owner: str | None
    inherited_session: str | None
    keep: bool


def read_labels(
    labels: Mapping[str, str], namespaces: Iterable[str], image: Mapping[str, str]
) -> Labels:
    """Read corral's labels under every namespace in use; `image`: the labels of its image."""
    spaces = tuple(namespaces)

    def value(word: str, *, inherited: bool = False) -> str | None:
        for space in spaces:
            key = f"{space}.{word}"
            text = labels.get(key, "")
            if text.strip() and (image.get(key) == text) is inherited:
                return text
        return None

    return Labels(
        value("owner"),
        value("session"),
        value("env"),
        value("owner", inherited=True),
        value("session", inherited=True),
        any(labels.get(f"{space}.keep") == "true" for space in spaces),
    )


def carries(labels: Mapping[str, str], namespaces: Iterable[str]) -> bool:
    """Whether any of corral's marks is there, so that the image must be asked too."""
    return any(labels.get(f"{space}.{word}") for space in namespaces for word in _WORDS)


def without_handed_on_project(
    labels: Mapping[str, str], image: Mapping[str, str]
) -> Mapping[str, str]:
    """The labels, less those of a compose project that the image hands to whatever is made from it.

    Images that compose builds carry the project's name, and their containers are the project's
    all the same. An image made from a project's container carries its working directory as well:
    a container that has this from its image was not started by compose.
    """
    if WORKING_DIR not in labels or image.get(WORKING_DIR) != labels[WORKING_DIR]:
        return labels
    return {key: value for key, value in labels.items() if not key.startswith(_COMPOSE)}


def project_of(labels: Mapping[str, str]) -> str:
    """The compose project that a thing belongs to, or ""."""
    return labels.get(PROJECT, "")


def testcontainers_session(labels: Mapping[str, str]) -> str | None:
    """The Testcontainers session that made a thing ("" if it does not say), or None."""
    if not any(key in labels for key in _TESTCONTAINERS_ANY):
        return None
    return labels.get(TESTCONTAINERS) or labels.get("org.testcontainers.session-id", "")


def cluster_node(labels: Mapping[str, str]) -> bool:
    """Whether it is a node of a kind, k3d or minikube cluster, which is removed as a whole."""
    return any(key in labels for key in _CLUSTER_TOOLS)
