"""Ports of real sockets: free or not, held for one's own server, and whose listener it is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from corral.errors import HeldError, InvalidValueError
from corral.kernel import _psutil_sockets, listening
from corral.kernel.sockets import (
    EVERYWHERE,
    WILDCARDS,
    HeldPort,
    Listener,
    ephemeral_range,
    listeners,
    port_is_free,
    socket_inodes,
)
from support.engines import require_engine
from support.programs import program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from support.processes import Tracker

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="ports are held on Linux only")

_TOOLS = """
import errno, socket
from corral.errors import CorralError
from corral.kernel.sockets import *

def opened(address, port, *, reuse=False, listen=False, v6only=True):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    if reuse:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    if listen:
        made.listen()
    return made

def failed(action, *arguments, **options):
    try:
        action(*arguments, **options)
    except OSError as error:
        return errno.errorcode[error.errno]
    except CorralError as error:
        return type(error).__name__
    return None

def small_range(first, last):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as file:
        file.write(f"{first} {last}")
"""


def alone(source: str) -> list[str]:
    """The argv that runs `source` in a network namespace of its own."""
    return ["unshare", "-n", *program(_TOOLS + source)]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")


def opened(
    address: str,
    port: int = 0,
    *,
    reuse: bool = False,
    listen: bool = False,
    v6only: bool = True,
    kind: int = socket.SOCK_STREAM,
) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, kind)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
    if reuse:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
        if listen:
            made.listen()
    except OSError:
        made.close()
        raise
    return made


@pytest.fixture
def port() -> int:
    """A port below the ephemeral range that nobody has or had lately, and another each time."""
    while True:
        number = 22000 + int.from_bytes(os.urandom(2)) % 9000
        if number not in listening.lingering_ports() and all(
            port_is_free(number, protocol=protocol) for protocol in ("tcp", "udp")
        ):
            return number


def test_the_ephemeral_range_is_the_kernels() -> None:
    first, last = ephemeral_range()
    assert 0 < first < last <= 65535
    if sys.platform == "linux":
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            assert [first, last] == [int(n) for n in file.read().split()]


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "127.4.5.6", "::1", "::"])
@pytest.mark.parametrize("listen", [True, False])
def test_a_port_that_somebody_has_anywhere_is_not_free(
    port: int, address: str, listen: bool
) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 here")
    with opened(address, port, listen=listen):
        assert not port_is_free(port)
        assert port_is_free(port, protocol="udp")
    assert port_is_free(port)


@needs_ipv6
def test_a_listener_of_both_families_takes_the_port_on_all_addresses(port: int) -> None:
    with opened("::", port, listen=True, v6only=False):
        assert not port_is_free(port)
        assert not port_is_free(port, address="127.0.0.1")
        assert not port_is_free(port, address="127.4.5.6")


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_udp_port_that_somebody_has_is_not_free(port: int, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 here")
    with opened(address, port, kind=socket.SOCK_DGRAM):
        assert not port_is_free(port, protocol="udp")
        assert port_is_free(port)
    with opened(address, port, kind=socket.SOCK_DGRAM, reuse=True):
        assert not port_is_free(port, protocol="udp")


@linux_only
def test_each_loopback_address_has_ports_of_its_own(port: int) -> None:
    with opened("127.4.5.6", port, listen=True):
        assert not port_is_free(port, address="127.4.5.6")
        assert port_is_free(port, address="127.4.5.7")
        assert not port_is_free(port, address="0.0.0.0")


def test_a_wildcard_listener_takes_the_port_on_every_address(port: int) -> None:
    with opened("0.0.0.0", port, listen=True):
        assert not port_is_free(port, address="127.0.0.1")
        if sys.platform == "linux":
            assert not port_is_free(port, address="127.4.5.6")


@linux_only
def test_what_a_stopped_server_left_behind_does_not_count(port: int) -> None:
    server = opened("127.0.0.1", port, reuse=True, listen=True)
    client = socket.create_connection(("127.0.0.1", port))
    connection, _ = server.accept()
    connection.close()  # the side that closes first keeps the connection in TIME_WAIT
    client.close()
    assert not port_is_free(port)
    server.close()
    eventually(lambda: port in listening.lingering_ports())
    with pytest.raises(OSError, match="in use"):
        opened("127.0.0.1", port)
    assert port_is_free(port)
    with HeldPort(port):
        opened("127.0.0.1", port, reuse=True, listen=True).close()
        assert not port_is_free(port)  # though connections linger, too


@linux_only
def test_a_held_port_is_not_free(port: int) -> None:
    for address in EVERYWHERE:
        if ":" in address and not has_ipv6():
            continue
        with HeldPort(port, [address]):
            assert not port_is_free(port)
            assert not port_is_free(port, address=address)
    assert port_is_free(port)


@pytest.mark.parametrize("number", [0, -1, 65536, 2**40])
def test_what_is_no_port_is_refused(number: int) -> None:
    with pytest.raises(InvalidValueError):
        port_is_free(number)
    with pytest.raises(InvalidValueError):
        HeldPort(number)


def test_what_is_no_protocol_or_address_is_refused(port: int) -> None:
    with pytest.raises(InvalidValueError, match="no protocol"):
        port_is_free(port, protocol="sctp")
    for address in ("localhost", "", "1.2.3", "::g", "[::1]", "127.0.0.1 "):
        with pytest.raises(InvalidValueError, match="no IP address"):
            port_is_free(port, address=address)
    for address in ("192.0.2.1", "2001:db8::1"):
        with pytest.raises(InvalidValueError, match="no address of this machine"):
            port_is_free(port, address=address)
        if sys.platform == "linux":
            with pytest.raises(InvalidValueError, match="no address of this machine"):
                HeldPort(port, ["127.0.0.1", address])
    assert port_is_free(port)


@linux_only
def test_a_port_that_this_user_may_not_have_is_refused() -> None:
    require_engine("namespaces")
    source = """
small_range(40000, 40999)
with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as file:
    file.write("1024")
become_nobody()
say([failed(port_is_free, 80), failed(HeldPort, 80), port_is_free(1024)])
"""
    assert said(alone(source)) == ["InvalidValueError", "InvalidValueError", True]


def test_a_probe_that_fails_is_not_an_answer() -> None:
    source = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
say([failed(port_is_free, 22000), failed(HeldPort, 22000)])
"""
    assert said(program(_TOOLS + source)) == ["EnumerationError", "EnumerationError"]


@linux_only
def test_a_machine_without_ipv6_has_free_ports_and_holds_the_others() -> None:
    require_engine("namespaces")
    source = """
small_range(40000, 40999)
with open("/proc/sys/net/ipv6/conf/all/disable_ipv6", "w") as file:
    file.write("1")
subprocess.run(["ip", "-6", "addr", "flush", "dev", "lo"], check=True)
held = HeldPort(22000)
say([port_is_free(22001), port_is_free(22000), list(held.addresses)])
"""
    free, taken, addresses = said(alone(source))
    assert (free, taken) == (True, False)
    assert addresses[:2] == ["127.0.0.1", "0.0.0.0"]
    assert "::1" not in addresses


@linux_only
@pytest.mark.parametrize("listen", [True, False])
def test_strangers_that_ask_for_any_port_never_get_a_held_one(listen: bool) -> None:
    require_engine("namespaces")
    # the whole range of the kernel is ten ports, and one of them is held
    source = f"""
small_range(40000, 40009)
held = HeldPort(40004)
server = opened("127.0.0.1", 40004, reuse=True, listen=True) if {listen} else None
got = set()
for address in "127.0.0.1", "0.0.0.0", "::1", "::", "127.0.0.2":
    for reuse in False, True:
        for _ in range(100):
            strangers = []
            try:
                while True:
                    strangers.append(opened(address, 0, reuse=reuse))
            except OSError as error:
                assert error.errno == errno.EADDRINUSE
            got |= {{one.getsockname()[1] for one in strangers}}
            for one in strangers:
                one.close()
say([40004 in got, len(got) > 3])
"""
    assert said(alone(source)) == [False, True]


@linux_only
def test_connections_of_strangers_never_use_a_held_port() -> None:
    require_engine("namespaces")
    source = """
small_range(40000, 40009)
held = HeldPort(40004)
server = opened("127.0.0.1", 30000, reuse=True, listen=True)
got, clients = set(), []
try:
    while True:
        client = socket.create_connection(("127.0.0.1", 30000))
        clients.append(client)
        got.add(client.getsockname()[1])
except OSError as error:
    assert error.errno == errno.EADDRNOTAVAIL
say([40004 in got, len(got)])
"""
    assert said(alone(source)) == [False, 9]


@linux_only
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_server_listens_over_a_held_port_and_a_second_one_cannot(port: int, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 here")
    with HeldPort(port) as held:
        with opened(address, port, reuse=True, listen=True) as server:
            with socket.create_connection(("127.0.0.1" if "." in address else "::1", port)):
                server.accept()[0].close()
            for again in (address, "0.0.0.0" if "." in address else "::"):
                with pytest.raises(OSError, match="in use"):
                    opened(again, port, reuse=True, listen=True)
        assert held.addresses
        opened(address, port, reuse=True, listen=True).close()  # and it may restart


@linux_only
@needs_ipv6
def test_a_server_of_both_families_listens_over_a_held_port(port: int) -> None:
    with HeldPort(port), opened("::", port, reuse=True, listen=True, v6only=False) as server:
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, port)):
                server.accept()[0].close()


@linux_only
def test_a_real_server_answers_over_a_held_port(port: int, track: Tracker) -> None:
    with HeldPort(port):
        argv = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
        track.spawn(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
                    return bool(page.status == 200)
            except OSError:
                return False

        eventually(answers)


@linux_only
def test_a_plain_bind_by_name_fails_while_the_port_is_held(port: int) -> None:
    with HeldPort(port), pytest.raises(OSError, match="in use"):
        opened("127.0.0.1", port)
    opened("127.0.0.1", port).close()


@linux_only
@linux_only
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "127.4.5.6", "::1", "::"])
@pytest.mark.parametrize("listen", [True, False])
def test_only_a_port_that_nobody_has_is_held_as_a_free_one(
    port: int, address: str, listen: bool
) -> None:
    with opened(address, port, reuse=True, listen=listen), pytest.raises(HeldError):
        HeldPort(port, WILDCARDS, free=True)
    with HeldPort(port, WILDCARDS, free=True):
        with pytest.raises(HeldError):
            HeldPort(port, WILDCARDS, free=True)
        assert not port_is_free(port)
        opened(address, port, reuse=True, listen=True).close()


def test_a_port_on_which_somebody_listens_cannot_be_held(port: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with opened("0.0.0.0", port, reuse=True, listen=True):
        with pytest.raises(HeldError) as caught:
            HeldPort(port)
        assert (caught.value.resource, bool(caught.value.remedy)) == (str(port), True)
        with pytest.raises(HeldError):
            HeldPort(port, ["::1", "127.0.0.1"])
    assert len(os.listdir("/proc/self/fd")) == before


@linux_only
def test_what_is_held_can_be_handed_over_and_let_go(port: int) -> None:
    held = HeldPort(port, ["127.0.0.1", "127.0.0.1"])
    assert (held.port, held.addresses) == (port, ("127.0.0.1",))
    fd = held.fileno("127.0.0.1")
    assert not os.get_inheritable(fd)
    with socket.socket(fileno=os.dup(fd)) as server:
        server.listen()
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()
    held.release()
    held.release()
    assert held.addresses == ()
    with pytest.raises(KeyError):
        held.fileno("127.0.0.1")


def test_a_listener_is_its_processs(port: int, track: Tracker) -> None:
    source = _TOOLS + f'server = opened("127.0.0.1", {port}, listen=True)\nsay()\nsleep()'
    child, _ = started(track, program(source))
    (found,) = (one for one in listeners() if one.port == port)
    assert (found.address, found.inode in socket_inodes(child.pid)) == ("127.0.0.1", True)
    assert found.inode not in socket_inodes(os.getpid())
    child.kill()
    eventually(lambda: socket_inodes(child.pid) == frozenset())  # a zombie has none
    child.wait()
    assert socket_inodes(child.pid) == frozenset()
    assert port not in {one.port for one in listeners()}


@pytest.mark.parametrize(
    ("address", "v6only", "shown"),
    [
        ("0.0.0.0", True, "0.0.0.0"),
        ("::1", True, "::1"),
        ("::", True, "::"),
        ("::", False, "::"),
        ("::ffff:127.0.0.1", False, "127.0.0.1"),
    ],
)
def test_listeners_are_told_by_their_addresses(
    port: int, address: str, v6only: bool, shown: str
) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("no IPv6 here")
    with opened(address, port, listen=True, v6only=v6only) as server:
        (found,) = (one for one in listeners() if one.port == port)
        assert found.address == shown
        if sys.platform == "linux":
            assert found.inode == os.fstat(server.fileno()).st_ino


@linux_only
def test_a_socket_that_only_holds_a_port_is_no_listener(port: int) -> None:
    with HeldPort(port):
        assert port not in {one.port for one in listeners()}


def test_an_inherited_socket_belongs_to_both(port: int, track: Tracker) -> None:
    source = (
        _TOOLS
        + f"""
server = opened("127.0.0.1", {port}, listen=True)
say(child(sleep))
sleep()
"""
    )
    parent, pid = started(track, program(source))
    track.pid(pid)
    (found,) = (one for one in listeners() if one.port == port)
    assert found.inode in socket_inodes(parent.pid) & socket_inodes(pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_sockets_that_may_not_be_seen_are_a_failed_look() -> None:
    source = "import socket\nbecome_nobody()\nsay(failed(socket_inodes, os.getppid()))"
    assert said(program(_TOOLS + source)) == "EnumerationError"


def test_without_proc_nobody_knows_which_ports_linger() -> None:
    require_engine("namespaces")
    source = "from corral.kernel.listening import lingering_ports\nsay(failed(lingering_ports))"
    hidden = 'mount -t tmpfs none /proc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", hidden, "sh", *program(_TOOLS + source)]
    assert said(argv) == "EnumerationError"


def test_elsewhere_psutil_tells_listeners_and_their_processes(port: int, track: Tracker) -> None:
    source = _TOOLS + f'server = opened("127.0.0.1", {port}, listen=True)\nsay()\nsleep()'
    child, _ = started(track, program(source))
    (found,) = (one for one in _psutil_sockets.listeners() if one.port == port)
    assert isinstance(found, Listener)
    assert (found.address, found.inode in _psutil_sockets.socket_inodes(child.pid)) == (
        "127.0.0.1",
        True,
    )
    assert found.inode not in _psutil_sockets.socket_inodes(os.getpid())
    child.kill()
    child.wait()
    assert _psutil_sockets.socket_inodes(child.pid) == frozenset()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_elsewhere_what_may_not_be_seen_is_a_failed_look() -> None:
    source = """
import psutil
from corral.kernel import _psutil_sockets
become_nobody()
say(failed(_psutil_sockets.socket_inodes, os.getppid()))
"""
    assert said(program(_TOOLS + source)) == "EnumerationError"
