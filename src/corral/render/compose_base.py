"""What a project's own Compose files say, as far as isolation depends on it.

`read_base(files, environ)` is all that `corral up` needs to know which ports to claim; the override
is made from the same value.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple
from corral.render import compose_merge, compose_read
from corral.render.compose_ports import PortRange, UnreadablePortError, read_port
from corral.render.interpolation import expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from corral.render.compose_merge import Tree
    from corral.render.compose_ports import ContainerPort
    from corral.render.compose_read import Reading

# driver options that make one thing of what each worktree should have for itself
_SHARING = {
    "device": "its driver_opts name one device or directory for all worktrees",
    "com.docker.network.bridge.name": "its driver_opts name one bridge of the host",
}
_OWN_PROJECT = "COMPOSE_PROJECT_NAME"
_IPV4, _IPV6 = "ipv4_address", "ipv6_address"


class Warned(NamedTuple):
    """What cannot be isolated: the service ("" for the project), the key, and why in words."""

    service: str
    key: str
    message: str


class Service(NamedTuple):
    """One service. `ports` are claimed one by one; `dealt` ranges are left to the engine.

    `has_ports`: the base names ports at all. `network_mode`: "" for networks of the project, where
    services find one another by name. `resets`: keys to take away. `networks`: those that it
    names, None where it takes the default one. `fixed_addresses`: (network, key) of static
    addresses. `environment`: as written.
    """

    name: str
    ports: tuple[ContainerPort, ...]
    dealt: tuple[PortRange, ...]
    has_ports: bool
    network_mode: str
    resets: tuple[str, ...]
    networks: tuple[str, ...] | None
    fixed_addresses: tuple[tuple[str, str], ...]
    environment: Mapping[str, Any]


class PublishedPort(NamedTuple):
    """A port to claim: `name` is the service, or service and container port where it has several.

    `preferred`: the host port of the base file, or None.
    """

    service: str
    target: int
    protocol: str
    name: str
    preferred: int | None

    @property
    def key(self) -> tuple[str, int, str]:
        """(service, container port, protocol), which names it in a project."""
        return (self.service, self.target, self.protocol)


class Base(NamedTuple):
    """The files, merged: their services, and what else in them is the same in every worktree.

    `volumes` and `networks`: those with a fixed name. `subnets`: networks with a fixed range.
    """

    files: tuple[str, ...]
    services: tuple[Service, ...]
    volumes: tuple[str, ...]
    networks: tuple[str, ...]
    subnets: tuple[str, ...]
    warnings: tuple[Warned, ...]

    def service(self, name: str) -> Service | None:
        """The service of that name, or None."""
        return next((service for service in self.services if service.name == name), None)


def read_base(
    files: Sequence[str], environ: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> Base:
    """The project that the files describe; ConfigurationError for what is no Compose file.

    The arguments are those of `compose_read.read`.
    """
    reading = compose_read.read(files, environ, texts)
    reader = _Reader(reading)
    reader.warned += [Warned(*unread) for unread in reading.unread]
    services = tuple(reader.service(name) for name in reader.services)
    return Base(
        tuple(files),
        services,
        reader.fixed_names("volumes"),
        reader.fixed_names("networks"),
        reader.subnets(),
        tuple(reader.warned),
    )


def published_ports(base: Base) -> tuple[PublishedPort, ...]:
    """Every port to claim, in the order of the files.

    A service that publishes one port gives it its name (`web`), one with several adds the container
    port (`web_8080`, and `web_53_udp` where another protocol has the same number).
    """
    return tuple(port for service in base.services for port in _published(service))


def _published(service: Service) -> Iterator[PublishedPort]:
    numbers = [port.target for port in service.ports]
    for port in service.ports:
        name = service.name
        if len(numbers) > 1:
            name += f"_{port.target}"
        if numbers.count(port.target) > 1 and port.protocol != "tcp":
            name += f"_{port.protocol}"
        yield PublishedPort(service.name, port.target, port.protocol, name, port.published)


class _Reader:
    """Takes a merged tree apart and notes what cannot be isolated."""

    def __init__(self, reading: Reading) -> None:
        tree = self._tree = reading.tree
        self._environ = reading.environ
        self._late = reading.late
        self.warned: list[Warned] = []
        self.services: dict[str, Tree] = {
            name: service if isinstance(service, dict) else {}
            for name, service in _mapping(tree.get("services")).items()
        }

    def service(self, name: str) -> Service:
        tree = self.services[name]
        mode = self._network_mode(name, tree)
        # in a network that is somebody else's, ports are published there or not at all
        ports, dealt = self._ports(name, tree) if mode in {"", "bridge"} else ((), ())
        networks = tree.get("networks")
        self._other_warnings(name, tree)
        return Service(
            name,
            ports,
            dealt,
            has_ports=bool(tree.get("ports")),
            network_mode=mode,
            resets=self._resets(name, tree),
            networks=tuple(_names(networks)) if networks else None,
            fixed_addresses=self._fixed_addresses(name, networks),
            environment=compose_merge.pairs(tree.get("environment")),
        )

    def _warn(self, service: str, key: str, message: str) -> None:
        self.warned.append(Warned(service, key, message))

    def _text(self, value: Any) -> str:
        return "" if value is None else expand(str(value), self._environ)

    def _network_mode(self, name: str, tree: Tree) -> str:
        mode = self._text(tree.get("network_mode"))
        if mode == "host":
            self._warn(
                name,
                "network_mode",
                "it listens on the host itself, so two worktrees cannot run it at once",
            )
        elif mode.startswith("container:"):
            self._warn(name, "network_mode", f"{mode} is a container of no project's own")
        return mode

    def _ports(
        self, name: str, tree: Tree
    ) -> tuple[tuple[ContainerPort, ...], tuple[PortRange, ...]]:
        entries = tree.get("ports")
        ports: dict[tuple[int, str], ContainerPort] = {}
        dealt: list[PortRange] = []
        for entry in entries if isinstance(entries, list) else []:
            try:
                found = read_port(entry, self._environ, self._late)
            except UnreadablePortError as error:
                self._warn(name, "ports", f"{error}, so it is not published")
                continue
            if isinstance(found, PortRange):
                dealt.append(found)
                self._warn(
                    name,
                    "ports",
                    f"{found.first}-{found.last} is a wide range: the engine deals its host ports",
                )
            else:
                for port in found:
                    ports.setdefault((port.target, port.protocol), port)
        if ports and self._replicas(tree) > 1:
            self._warn(name, "ports", "several replicas: the engine deals their host ports")
            dealt += [PortRange(port.target, port.target, port.protocol) for port in ports.values()]
            ports = {}
        return tuple(ports.values()), tuple(dealt)

    def _replicas(self, tree: Tree) -> int:
        deploy = _mapping(tree.get("deploy"))
        text = self._text(deploy.get("replicas", tree.get("scale")))
        return int(text) if text.isascii() and text.isdigit() else 1

    def _resets(self, name: str, tree: Tree) -> tuple[str, ...]:
        """Fixed names: of the container, and of an image that is built here and used here only."""
        image = self._text(tree.get("image"))
        if not (image and tree.get("build")) or self._varies(tree.get("image")):
            return ("container_name",)
        users = [
            other for other, its in self.services.items() if other != name and not its.get("build")
        ]
        if any(self._text(self.services[other].get("image")) == image for other in users):
            self._warn(
                name,
                "image",
                f"{image} is built here and used by another service, so worktrees share the image",
            )
            return ("container_name",)
        return ("container_name", "image")

    def _varies(self, value: Any) -> bool:
        """Whether a name holds the project's name, so that it is no fixed one."""
        return _OWN_PROJECT in str(value)

    def _fixed_addresses(self, name: str, networks: Any) -> tuple[tuple[str, str], ...]:
        found = []
        for network, settings in _mapping(networks).items():
            for key in (_IPV4, _IPV6):
                if key in _mapping(settings):
                    found.append((network, key))
                    self._warn(
                        name,
                        f"networks.{network}.{key}",
                        "the address is left out, for each worktree has a range of its own",
                    )
        return tuple(found)

    def _other_warnings(self, name: str, tree: Tree) -> None:
        for link in tree.get("external_links") or ():
            self._warn(name, "external_links", f"{self._text(link)} is a container outside")
        for other in tree.get("volumes_from") or ():
            if self._text(other).startswith("container:"):
                self._warn(name, "volumes_from", f"{self._text(other)} is a container outside")
        for mount in tree.get("volumes") or ():
            source = self._shared_directory(mount)
            if source:
                self._warn(name, "volumes", f"{source} is one directory for all worktrees")

    def _shared_directory(self, mount: Any) -> str:
        """The absolute directory that a writable bind mount shares, "" if it shares none."""
        if isinstance(mount, dict):
            source = self._text(mount.get("source")) if mount.get("type") == "bind" else ""
            read_only = bool(mount.get("read_only"))
        else:
            parts = self._text(mount).split(":")
            source = parts[0] if len(parts) > 1 else ""
            read_only = len(parts) > 2 and "ro" in parts[2].split(",")  # noqa: PLR2004
        outside = source.startswith(("/", "~")) and not source.endswith(".sock")
        harmless = source.startswith(("/dev/", "/proc/", "/sys/", "/etc/"))
        return source if outside and not harmless and not read_only else ""

    def fixed_names(self, kind: str) -> tuple[str, ...]:
        """Volumes or networks with a name of their own; those of somebody else are warned of."""
        found = []
        for name, settings in _mapping(self._tree.get(kind)).items():
            described = _mapping(settings)
            if self._external(described.get("external")):
                word = "volume" if kind == "volumes" else "network"
                self._warn("", f"{kind}.{name}", f"the {word} is external: all worktrees share it")
                continue
            if "name" in described and not self._varies(described["name"]):
                found.append(name)
            for key, reason in _SHARING.items():
                if key in _mapping(described.get("driver_opts")):
                    self._warn("", f"{kind}.{name}", reason)
        return tuple(found)

    def _external(self, value: Any) -> bool:
        return isinstance(value, dict) or self._text(value).lower() == "true"

    def subnets(self) -> tuple[str, ...]:
        found = []
        for name, settings in _mapping(self._tree.get("networks")).items():
            described = _mapping(settings)
            if self._external(described.get("external")):
                continue
            if any(
                "subnet" in _mapping(c) for c in _mapping(described.get("ipam")).get("config") or ()
            ):
                found.append(name)
                self._warn(
                    "",
                    f"networks.{name}.ipam",
                    "the fixed subnet is left out, for two networks cannot have the same",
                )
        return tuple(found)


def _mapping(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _names(value: Any) -> Iterable[str]:
    return (str(name) for name in value) if isinstance(value, list | dict) else ()
