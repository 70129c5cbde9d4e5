"""What engines answer, decoded: fields that are not needed are passed over, wrong ones fail.

Sources: the Docker Engine API reference, and the answers of Docker 20.10 and Podman 4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from corral.backends.engine.instants import instant
from corral.backends.engine.states import EngineError
from corral.model.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_T = TypeVar("_T")
_ANONYMOUS = "com.docker.volume.anonymous"
_HEXADECIMAL = frozenset("0123456789abcdef")
_RANDOM_NAME = 64
_FIRST_NETWORK = "none"
_BUILT_IN = frozenset({"bridge", "host", "none", "podman", "ingress", "docker_gwbridge"})


class Mount(NamedTuple):
    """One mount of a container. `kind`: volume, bind, tmpfs …; `name` only of volumes."""

    kind: str
    name: str
    source: str

    @property
    def anonymous(self) -> bool:
        """A volume that nobody named: the engine gave it 64 hexadecimal digits."""
        return self.kind == "volume" and random_name(self.name)


class Container(NamedTuple):
    """One container, running or not. `created`: unix time. `ports`: published ones.

    `image`: the id of its image; `image_name`: the name under which it was asked for.
    """

    id: str
    name: str
    image: str
    image_name: str
    labels: Mapping[str, str]
    created: float
    state: str
    mounts: tuple[Mount, ...]
    ports: tuple[int, ...]


class Network(NamedTuple):
    """One network. `stamp` is its creation as the engine writes it, `created` as unix time."""

    id: str
    name: str
    labels: Mapping[str, str]
    stamp: str
    created: float | None

    @property
    def built_in(self) -> bool:
        """One of those that every engine has by itself."""
        return self.name in _BUILT_IN


class Volume(NamedTuple):
    """One volume; it has no id. `stamp` is its creation as the engine writes it."""

    name: str
    labels: Mapping[str, str]
    stamp: str
    created: float | None
    mountpoint: str

    @property
    def anonymous(self) -> bool:
        """A volume that nobody named."""
        return _ANONYMOUS in self.labels or random_name(self.name)


def random_name(name: str) -> bool:
    """Whether it is a name that engines give to what nobody named."""
    return len(name) == _RANDOM_NAME and set(name) <= _HEXADECIMAL


def containers(answer: Any) -> tuple[Container, ...]:
    """The answer to GET /containers/json. Raises EngineError for what cannot be understood."""
    return tuple(_container(_object(row, "container")) for row in _list(answer, "containers"))


def networks(answer: Any) -> tuple[Network, ...]:
    """The answer to GET /networks."""
    found = []
    for entry in _list(answer, "networks"):
        row = _object(entry, "network")
        stamp = _text(row, "Created", "")
        found.append(
            Network(_text(row, "Id"), _text(row, "Name"), _labels(row), stamp, instant(stamp))
        )
    return tuple(found)


def volumes(answer: Any) -> tuple[Volume, ...]:
    """The answer to GET /volumes."""
    found = []
    for entry in _list(_object(answer, "list of volumes").get("Volumes"), "volumes"):
        row = _object(entry, "volume")
        stamp = _text(row, "CreatedAt", "")
        name, place = _text(row, "Name"), _text(row, "Mountpoint", "")
        found.append(Volume(name, _labels(row), stamp, instant(stamp), place))
    return tuple(found)


def image_labels(answer: Any) -> dict[str, str]:
    """The labels that an image hands to its containers, from GET /images/ID/json."""
    config = _object(answer, "image").get("Config")
    return _labels(_object(config, "image's configuration")) if config is not None else {}


def identity_in(networks: tuple[Network, ...]) -> str:
    """What names a Docker engine for good, "" for engines that say it elsewhere.

    Every Docker engine makes the network `none` once for its data directory and never again, so
    its random id names that directory, and what was kept in it.
    """
    return next((network.id for network in networks if network.name == _FIRST_NETWORK), "")


def identity_told(answer: Any) -> str:
    """What names any other engine for good, from GET /info.

    Podman makes up another id for every answer, so the host's name and the directory must do.
    """
    info = _object(answer, "engine")
    return f"{_text(info, 'Name', '')}:{_text(info, 'DockerRootDir')}"


def _container(row: dict[str, Any]) -> Container:
    identifier = _text(row, "Id")
    names = _list(row.get("Names"), "names of a container")
    created = row.get("Created")
    if not isinstance(created, int | float) or isinstance(created, bool):
        raise EngineError(f"the container {identifier[:12]} has no creation time")
    return Container(
        id=identifier,
        name=str(names[0]).removeprefix("/") if names else identifier[:12],
        image=_text(row, "ImageID", ""),
        image_name=_text(row, "Image", ""),
        labels=_labels(row),
        created=float(created),
        state=_text(row, "State", "unknown").lower(),
        mounts=_several(row.get("Mounts"), "mounts", _mount),
        ports=tuple(filter(None, _several(row.get("Ports"), "ports", _port))),
    )


def _mount(row: dict[str, Any]) -> Mount:
    return Mount(_text(row, "Type", ""), _text(row, "Name", ""), _text(row, "Source", ""))


def _port(row: dict[str, Any]) -> int:
    """The port of this machine, 0 for one that is not published."""
    number = row.get("PublicPort") or 0
    if not isinstance(number, int):
        raise EngineError(f"{number!r} is no port")
    return number


def _several(value: Any, what: str, decode: Callable[[dict[str, Any]], _T]) -> tuple[_T, ...]:
    return tuple(decode(_object(row, what)) for row in _list(value, what))


def _list(value: Any, what: str) -> list[Any]:
    """A list; engines write null for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise EngineError(f"the {what} are no list: {str(value)[:80]}")
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise EngineError(f"the {what} is no object: {str(value)[:80]}")
    return value


def _text(row: dict[str, Any], key: str, default: str | None = None) -> str:
    """A text; without a default an absent or empty one is an error."""
    value = row.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (not value and default is None):
        raise EngineError(f"{key} is {value!r}, which is not what the API says")
    return value


def _labels(row: dict[str, Any]) -> dict[str, str]:
    value = row.get("Labels")
    if value is None:
        return {}
    labels = _object(value, "map of labels")
    for key, text in labels.items():
        if not isinstance(text, str):
            raise EngineError(f"the label {key} is {text!r}, which is no text")
    return labels
