"""Which containers publish a port of this machine, also while they are still being started."""

from __future__ import annotations

import json

from corral.errors import EnumerationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from corral.backends.engine.client import Engine
    from corral.backends.engine.views import Container

# The engine listens for a container before it lists its ports.
_STARTING = frozenset({"configured", "created", "initialized", "restarting"})
_OK = 200


def publishers(
    engine: Engine, containers: Iterable[Container], port: int, deadline: float
) -> list[Container]:
    """The containers that publish the port, will as soon as they run, or listen on it themselves.

    In the network of the machine a container publishes nothing: its own process listens.
    """
    found, asked = [], []
    for container in containers:
        if port in container.ports:
            found.append(container)
        elif container.state in _STARTING or (container.state == "running" and not container.ports):
            asked.append(container)
    calls = [("GET", f"/containers/{container.id}/json", None) for container in asked]
    answers = engine.calls(calls, deadline)
    for container, answer in zip(asked, answers, strict=True):
        if answer.status != _OK:  # it went in the meantime
            continue
        about = _About(answer.body)
        if port in about.bound() or (about.in_host_network() and _listens(about.pid(), port)):
            found.append(container)
    return found


class _About:
    """What an engine tells of one container; what is not as documented says nothing."""

    def __init__(self, body: bytes) -> None:
        try:
            told: Any = json.loads(body)
        except ValueError:
            told = None
        self._told = told if isinstance(told, dict) else {}

    def _part(self, name: str) -> dict[str, Any]:
        part = self._told.get(name)
        return part if isinstance(part, dict) else {}

    def bound(self) -> set[int]:
        """The ports of the machine that its options name."""
        bindings = self._part("HostConfig").get("PortBindings")
        found = set()
        for hosts in bindings.values() if isinstance(bindings, dict) else ():
            for host in hosts or ():
                number = str(host.get("HostPort") or "") if isinstance(host, dict) else ""
                if number.isdecimal():
                    found.add(int(number))
        return found

    def in_host_network(self) -> bool:
        """Whether its processes listen in the network of the machine."""
        return self._part("HostConfig").get("NetworkMode") == "host"

    def pid(self) -> int:
        """Its first process, 0 if it does not run."""
        pid = self._part("State").get("Pid")
        return pid if isinstance(pid, int) else 0


def _listens(pid: int, port: int) -> bool:
    """Whether the process or one below it listens on the port."""
    from corral.decide.offspring import descendants
    from corral.kernel import procfs, sockets

    inodes = {one.inode for one in sockets.listeners() if one.port == port}
    if not pid or not inodes:
        return False
    pids = [pid, *(row.pid for row in descendants(procfs.snapshot(), pid))]
    try:
        return any(inodes & sockets.socket_inodes(each) for each in pids)
    except EnumerationError:  # another user's: whose sockets these are cannot be read
        return False
