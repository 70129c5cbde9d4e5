"""Where a tool's clusters are: which engine, and for minikube which home, also from records.

What the variables say now decides for new clusters. A recorded cluster is looked for where it was
made, wherever the variables lead by then.
"""

from __future__ import annotations

import json
import os

from corral.backends.engine.endpoints import Endpoint, discover
from corral.backends.programs import find_program
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PODMAN, _BY_PROGRAM = "podman", 'program:["podman"]'
_PROVIDER = "KIND_EXPERIMENTAL_PROVIDER"
_HOME = "MINIKUBE_HOME"
_PROVIDERS = ("docker", _PODMAN, "nerdctl")  # in the order in which kind looks for them
_LEADING = frozenset({"DOCKER_HOST", "DOCKER_CONTEXT", _PROVIDER, _HOME})
_CONTEXT = "context:"
_UNIX = "unix://"


class Site(NamedTuple):
    """One place that a tool works in.

    `name`: of the backend. `environ`: for the tool's commands. `place` leads here again, as do
    `others`, which name the same in another way. `provider`: the program of the engine. `spare`: a
    Podman that no socket leads to, which its program serves while it is asked.
    """

    name: str
    place: str
    provider: str
    endpoints: tuple[Endpoint, ...]
    environ: Mapping[str, str]
    spare: Endpoint | None = None
    others: tuple[str, ...] = ()


def sites(
    tool: str, environ: Mapping[str, str], home: str, recorded: Iterable[str] = ()
) -> tuple[Site, ...]:
    """The site that the variables lead to, then those that records lead to."""
    first = _site(tool, tool, environ, home)
    found = {_real(_decoded(first.place)): first}
    for place in recorded:
        wanted = _decoded(place)
        known = found.get(_real(wanted))
        if wanted is None or (known is not None and known.place == place):
            continue
        if known is not None:
            found[_real(wanted)] = known._replace(others=(*known.others, place))
            continue
        provider, endpoint, minikube_home = wanted
        there = {k: v for k, v in environ.items() if k not in _LEADING}
        there |= _leading(tool, provider, endpoint, minikube_home)
        site = _site(f"{tool}:{endpoint or minikube_home}", tool, there, home, endpoint)
        found[_real(wanted)] = site._replace(others=(place,))
    return tuple(found.values())


def _real(place: tuple[str, str, str] | None) -> tuple[str, str, str] | None:
    """A place by which two names of one socket are the same."""
    if place is None:
        return None
    provider, endpoint, minikube_home = place
    if endpoint.startswith(_UNIX):
        endpoint = os.path.realpath(endpoint.removeprefix(_UNIX))
    return provider, endpoint, minikube_home


def _site(name: str, tool: str, environ: Mapping[str, str], home: str, endpoint: str = "") -> Site:
    provider = _provider(tool, environ)
    recorded = [(provider, endpoint)] if endpoint else []
    known = discover(environ, home, recorded)
    if endpoint:
        known = tuple(e for e in known if _leads_to(e, endpoint))
    endpoints = tuple(e for e in known if _serves(e, tool, provider, known))
    first = endpoints[0].place if endpoints else ""
    place = json.dumps([provider, first, environ.get(_HOME, "")])
    return Site(name, place, provider, endpoints, environ, _spare(tool, provider, known, environ))


def _leads_to(endpoint: Endpoint, place: str) -> bool:
    return _real(("", endpoint.place, "")) == _real(("", place, ""))


def _spare(
    tool: str, provider: str, known: tuple[Endpoint, ...], environ: Mapping[str, str]
) -> Endpoint | None:
    uses = provider == _PODMAN or tool == "minikube"
    if not uses or any(_family(e) == _PODMAN for e in known) or not find_program(_PODMAN, environ):
        return None
    return Endpoint(_PODMAN, _BY_PROGRAM, source="the podman program")


def _provider(tool: str, environ: Mapping[str, str]) -> str:
    """The program of the engine that the tool uses."""
    if tool != "kind":
        return "docker"
    chosen = environ.get(_PROVIDER, "")
    here = (name for name in _PROVIDERS if find_program(name, environ))
    return chosen or next(here, "docker")


def _serves(endpoint: Endpoint, tool: str, provider: str, known: tuple[Endpoint, ...]) -> bool:
    """Whether the tool may have its nodes there; docker's is the first, minikube uses both."""
    if _family(endpoint) == _PODMAN:
        return provider == _PODMAN or tool == "minikube"
    return provider == "docker" and endpoint == known[0]


def _family(endpoint: Endpoint) -> str:
    return endpoint.name.partition(":")[0]


def _leading(tool: str, provider: str, endpoint: str, minikube_home: str) -> dict[str, str]:
    """The variables that lead a tool to a recorded site."""
    found = {_HOME: minikube_home} if minikube_home else {}
    if tool == "kind" and provider != "docker":
        found[_PROVIDER] = provider
    elif endpoint.startswith(_CONTEXT):
        found["DOCKER_CONTEXT"] = endpoint.removeprefix(_CONTEXT)
    elif endpoint:
        found["DOCKER_HOST"] = endpoint
    return found


def _decoded(place: str) -> tuple[str, str, str] | None:
    try:
        provider, endpoint, minikube_home = json.loads(place)
    except (ValueError, TypeError):  # of a later version, or torn: nobody can go there
        return None
    return str(provider), str(endpoint), str(minikube_home)


def minikube_profiles(environ: Mapping[str, str], home: str) -> tuple[str, ...]:
    """The names of minikube's profiles on disk: a hint that costs no process."""
    root = environ.get(_HOME) or home
    directory = root if root.endswith(".minikube") else os.path.join(root, ".minikube")
    try:
        return tuple(os.listdir(os.path.join(directory, "profiles")))
    except OSError:  # there are none, or nobody may look: the tool itself will tell
        return ()
