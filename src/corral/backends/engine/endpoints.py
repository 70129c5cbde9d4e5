"""Where container engines may be: what the tools themselves would use, and the usual sockets.

Only the file system is looked at here, and no engine is asked. The order of the Docker command
line is kept: DOCKER_HOST, DOCKER_CONTEXT, the current context of its configuration, the default.
"""

from __future__ import annotations

import os
import stat

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from corral.decide.engine_calls import EngineCall

DEFAULT_SOCKET = "/var/run/docker.sock"
_PODMAN_ROOTFUL = "/run/podman/podman.sock"
_UNIX = "unix://"
_CONTEXT = "context:"
_PROGRAM = "program:"
_CONFIG_LIMIT = 1024 * 1024


class Endpoint(NamedTuple):
    """One way to an engine.

    `name`: the word for it in reports ("docker", "podman", "docker:PLACE"). `url`: "unix:///PATH",
    "program:" with a podman command line in JSON that can serve the engine, or what `docker system
    dial-stdio` shall lead to. `context`: the docker context that says how,
    or "". `source`: where it was found, in words. `problem`: why it cannot be asked, or "".
    """

    name: str
    url: str
    context: str = ""
    source: str = ""
    problem: str = ""

    @property
    def path(self) -> str:
        """The path of its Unix socket, or "" where it is reached in another way."""
        return self.url.removeprefix(_UNIX) if self.url.startswith(_UNIX) else ""

    @property
    def program(self) -> str:
        """The command line of a program that can serve the engine, in JSON, or ""."""
        return self.url.removeprefix(_PROGRAM) if self.url.startswith(_PROGRAM) else ""

    @property
    def place(self) -> str:
        """What leads here again from a record, wherever the variables lead then."""
        return f"{_CONTEXT}{self.context}" if self.context and not self.path else self.url


def discover(
    environ: Mapping[str, str], home: str, recorded: Iterable[tuple[str, str]] = ()
) -> tuple[Endpoint, ...]:
    """Every endpoint to look at, the one that the docker command line would use first.

    `recorded` are names and places of endpoints that hold something recorded; they are looked at
    wherever the variables lead. Apart from the first and from these, an endpoint is listed only
    if its socket is there.
    """
    first = _docker(environ, home)
    known = (_recorded(environ, home, name, place) for name, place in recorded if place)
    sure = [first, *_named_podman(environ), *known]
    usual = [endpoint for endpoint in _usual(environ, home) if is_socket(endpoint.path)]
    return tuple(_distinct([*sure, *usual]))


def endpoint_of(call: EngineCall, environ: Mapping[str, str], home: str) -> Endpoint | None:
    """Where a command line of docker or podman leads; None where there is no way to look."""
    if call.tool == "docker":
        there = dict(environ)
        if call.host:
            there["DOCKER_HOST"] = call.host
        elif call.context:
            there.pop("DOCKER_HOST", None)
            there["DOCKER_CONTEXT"] = call.context
        return discover(there, home)[0]
    if call.tool != "podman" or call.context:
        return None
    if call.host:
        return Endpoint("podman", call.host, source="--url")
    remote = not {"-r", "--remote"}.isdisjoint(call.options)
    if remote or not call.options:
        for endpoint in discover(environ, home):
            if endpoint.name.partition(":")[0] == "podman":
                return endpoint
    if remote:
        return None
    import json

    # Its options may lead to a storage of its own, which no socket need know.
    words = json.dumps(["podman", *call.options])
    return Endpoint("podman", f"{_PROGRAM}{words}", source="the podman program")


def is_socket(path: str) -> bool:
    """Whether a socket is there; also where this user may not look at it."""
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except PermissionError:  # a directory on the way is closed: the call will say "denied"
        return True
    except OSError:  # absent in one way or another
        return False


def _recorded(environ: Mapping[str, str], home: str, name: str, place: str) -> Endpoint:
    kind = name.partition(":")[0]
    if place.startswith(_CONTEXT):
        directory = _configuration(environ, home)
        return _context(directory, place.removeprefix(_CONTEXT), "a record")._replace(name=kind)
    return Endpoint(kind, place, source="a record")


def _configuration(environ: Mapping[str, str], home: str) -> str:
    return environ.get("DOCKER_CONFIG") or os.path.join(home, ".docker")


def _docker(environ: Mapping[str, str], home: str) -> Endpoint:
    host = environ.get("DOCKER_HOST", "")
    if host:
        return Endpoint("docker", host, source="DOCKER_HOST")
    directory = _configuration(environ, home)
    name = environ.get("DOCKER_CONTEXT", "")
    source = "DOCKER_CONTEXT"
    if not name:
        configuration = os.path.join(directory, "config.json")
        try:
            name = _text(_read_json(configuration), "currentContext")
        except ValueError as error:
            return Endpoint("docker", "", problem=f"{configuration}: {error}")
        source = "the current docker context"
    if name in {"", "default"}:
        return Endpoint("docker", f"{_UNIX}{DEFAULT_SOCKET}", source="the default socket")
    return _context(directory, name, f"{source} {name}")


def _context(directory: str, name: str, source: str) -> Endpoint:
    """The endpoint of a docker context; its metadata lies under the SHA-256 of its name."""
    from hashlib import sha256

    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    path = os.path.join(directory, "contexts", "meta", digest, "meta.json")
    try:
        endpoints = _read_json(path).get("Endpoints")
        docker = endpoints.get("docker") if isinstance(endpoints, dict) else None
        host = _text(docker, "Host") if isinstance(docker, dict) else ""
    except ValueError as error:
        return Endpoint("docker", "", name, source, f"{path}: {error}")
    if not host:
        return Endpoint("docker", "", name, source, f"the docker context {name!r} names no host")
    return Endpoint("docker", host, name, source)


def _named_podman(environ: Mapping[str, str]) -> Iterator[Endpoint]:
    host = environ.get("CONTAINER_HOST", "")
    if host:
        yield Endpoint("podman", host, source="CONTAINER_HOST")


def _usual(environ: Mapping[str, str], home: str) -> Iterator[Endpoint]:
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    docker = [DEFAULT_SOCKET, os.path.join(home, ".docker/run/docker.sock")]
    podman = [_PODMAN_ROOTFUL]
    if runtime.startswith("/"):
        docker.insert(1, os.path.join(runtime, "docker.sock"))
        podman.insert(0, os.path.join(runtime, "podman/podman.sock"))
    for path in docker:
        yield Endpoint("docker", f"{_UNIX}{path}", source="a usual socket")
    for path in podman:
        yield Endpoint("podman", f"{_UNIX}{path}", source="a usual socket")


def _distinct(endpoints: list[Endpoint]) -> Iterator[Endpoint]:
    """Drop what leads to the same place again, and give each a name of its own."""
    places: set[str] = set()
    names: set[str] = set()
    for endpoint in endpoints:
        place = _place(endpoint)
        if place in places:
            continue
        places.add(place)
        name = endpoint.name
        if name in names:
            name = f"{name.partition(':')[0]}:{endpoint.path or endpoint.context or endpoint.url}"
        names.add(name)
        yield endpoint._replace(name=name)


def _place(endpoint: Endpoint) -> str:
    return os.path.realpath(endpoint.path) if endpoint.path else endpoint.place


def _read_json(path: str) -> dict[str, Any]:
    """The object in a small JSON file; empty if there is none. ValueError: it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(_CONFIG_LIMIT)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(error.strerror) from error
    import json

    try:
        value = json.loads(data)
    except ValueError as error:  # also UnicodeDecodeError
        raise ValueError(f"is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise ValueError("holds no object")  # noqa: TRY004 # it is the file that is wrong
    return value


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
