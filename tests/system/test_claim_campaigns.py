"""Claims and locks under fire: many processes, each of which may be killed at any moment."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from support.crowd import campaign
from support.engines import require_engine
from support.programs import program, said

if TYPE_CHECKING:
    from pathlib import Path

_LONG = 60.0  # seconds from which on a campaign has its full size
_PATIENCE = 180.0


def _crowd(soak_seconds: float) -> int:
    return 200 if soak_seconds >= _LONG else 40


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_of_many_that_fight_and_are_killed_one_holds_the_lock(
    private_root: Path, soak_seconds: float
) -> None:
    seen = campaign(
        "crowd_locks",
        private_root,
        _crowd(soak_seconds),
        soak_seconds,
        timeout=soak_seconds + _PATIENCE,
    )
    assert seen["twice"] == 0, seen
    assert seen["free"], seen
    assert seen["seconds"] < 1, seen
    assert seen["taken"] > 10, seen
    assert seen["killed"] > 10, seen


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_of_many_that_claim_and_are_killed_none_loses_or_doubles_a_port(
    private_root: Path, soak_seconds: float
) -> None:
    directory = private_root / "campaign"
    directory.mkdir()
    seen = campaign(
        "crowd_claims",
        directory,
        min(_crowd(soak_seconds), 80),  # six claims of up to three ports each, in a pool of 300
        soak_seconds,
        timeout=soak_seconds + _PATIENCE,
    )
    assert seen["twice"] == 0, seen
    assert seen["lost"] == 0, seen
    assert seen["made_up"] == 0, seen
    assert seen["integrity"] == "ok", seen
    assert seen["left"] == 0, seen
    assert seen["next_claim"] < 1, seen
    assert seen["held"] > 10, seen
    assert seen["killed"] > 10, seen


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_from_claim_to_listen_nobody_else_gets_a_port(soak_seconds: float) -> None:
    seen = campaign("crowd_servers", 50, 10, soak_seconds - 2, timeout=soak_seconds + _PATIENCE)
    assert seen["in_use"] == 0, seen
    assert seen["foreign"] == 0, seen
    assert seen["servers"] == seen["rounds"] * 500, seen
    assert seen["left"] == 0, seen


_EXHAUSTED = """
import socket
from corral import allocate_ephemeral_port
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
    file.write("40000 40031")
strangers = []
def grab(host, family):
    while True:
        asker = socket.socket(family)
        try:
            asker.bind((host, 0))
            asker.listen()
        except OSError:
            asker.close()
            return
        strangers.append(asker)
grab("", socket.AF_INET)
grab("::1", socket.AF_INET6)
given = [allocate_ephemeral_port() for _ in range(100)]
servers = [socket.create_server(("127.0.0.1", each.port)) for each in given]
clients = []
for server in servers:
    # the client's own port is named, for the kernel has none left to give
    client = socket.socket()
    client.bind(("127.0.0.1", 50000 + len(clients)))
    client.connect(server.getsockname())
    clients.append(client)
grab("", socket.AF_INET)
say([len(strangers) >= 32, len(servers), sorted({40000 <= each.port <= 40031 for each in given})])
"""


def test_the_whole_ephemeral_range_may_be_exhausted() -> None:
    require_engine("namespaces")
    assert socket.has_ipv6
    inside = 'ip link set lo up && exec "$@"'
    argv = ["unshare", "-n", "sh", "-c", inside, "sh", *program(_EXHAUSTED)]
    assert said(argv) == [True, 100, [False]]
