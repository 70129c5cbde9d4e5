"""Which ports an environment gets: preferred, kept, dealt from the pool, or a clear error."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from corral.config import PortWish
from corral.errors import ConfigurationError, CorralError, HeldError, InvalidValueError, UsageError
from corral.services.up import Request
from support.environments import bring_up, context_of, ports_of, variables_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def free() -> int:
    """A port that is free now and lies below the ephemeral range."""
    for port in range(20100 + os.getpid() % 1500, 21999):
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def listener(port: int, address: str = "127.0.0.1") -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((address, port))
    server.listen()
    return server


@pytest.fixture(params=["127.0.0.1", "0.0.0.0", "::1", "::"])
def taken(request: pytest.FixtureRequest, free: int) -> Iterator[int]:
    """A port on which a stranger listens, on each kind of address."""
    with closing(listener(free, request.param)):
        yield free


def registry_is_empty(state_dir: Path) -> bool:
    return not (state_dir / "registry.sqlite3").exists()


def test_the_main_checkout_gets_the_preferred_port_and_worktrees_get_their_own(
    git_repo: Path, worktree: Callable[[str], Path], free: int
) -> None:
    for tree in (git_repo, one := worktree("one"), two := worktree("two")):
        (tree / "corral.toml").write_text(f"[ports]\nweb = {free}\n")
    assert ports_of(git_repo) == {"web": free}
    dealt = {ports_of(one)["web"], ports_of(two)["web"]}
    assert len(dealt) == 2
    assert all(22000 <= port <= 31999 for port in dealt)


def test_a_second_up_keeps_every_port_while_its_own_server_listens(
    git_repo: Path, free: int
) -> None:
    (git_repo / "corral.toml").write_text(f"[ports]\nweb = {free}\napi = {{}}\n")
    first = ports_of(git_repo)
    with closing(listener(first["web"])), closing(listener(first["api"], "0.0.0.0")):
        assert ports_of(git_repo) == first


def test_a_preferred_port_in_use_falls_to_the_pool_and_is_said(git_repo: Path, taken: int) -> None:
    done = bring_up(git_repo, Request(ports=(PortWish("web", taken),)))
    assert 22000 <= done.environment["ports"]["web"] <= 31999
    assert any(f"{taken} is in use" in words for words in done.words)


def test_a_preferred_port_of_another_environment_falls_to_the_pool_and_is_said(
    git_repo: Path, worktree: Callable[[str], Path], free: int
) -> None:
    wish = Request(ports=(PortWish("web", free),))
    assert bring_up(worktree("one"), wish).environment["ports"] == {"web": free}
    done = bring_up(git_repo, wish)
    assert done.environment["ports"]["web"] != free
    assert any("claimed already" in words for words in done.words)


def test_a_pool_of_one_port_is_dealt_once(worktree: Callable[[str], Path], free: int) -> None:
    pool = {"CORRAL_POOL_FIRST": str(free), "CORRAL_POOL_LAST": str(free)}
    wish = Request(ports=(PortWish("web"),))
    assert bring_up(worktree("one"), wish, **pool).environment["ports"] == {"web": free}
    with pytest.raises(HeldError, match=f"{free}-{free}"):
        bring_up(worktree("two"), wish, **pool)


def test_a_port_of_the_pool_in_use_is_passed_over(git_repo: Path, taken: int) -> None:
    pool = {"CORRAL_POOL_FIRST": str(taken), "CORRAL_POOL_LAST": str(taken)}
    with pytest.raises(HeldError, match="no port of the pool"):
        bring_up(git_repo, Request(ports=(PortWish("web"),)), **pool)


def test_all_ports_are_claimed_or_none(git_repo: Path, free: int) -> None:
    pool = {"CORRAL_POOL_FIRST": str(free), "CORRAL_POOL_LAST": str(free)}
    with pytest.raises(HeldError):
        bring_up(git_repo, Request(ports=(PortWish("web"), PortWish("api"))), **pool)
    wish = Request(ports=(PortWish("other"),))
    assert bring_up(git_repo, wish, **pool).environment["ports"] == {"other": free}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CORRAL_POOL_FIRST": "5", "CORRAL_POOL_LAST": "4"}, "empty"),
        ({"CORRAL_POOL_FIRST": "23001", "CORRAL_POOL_LAST": "23000"}, "empty"),
        ({"CORRAL_POOL_LAST": "65536"}, "65535"),
        ({"CORRAL_PORTS_WEB": "abc"}, "65535"),
        ({"CORRAL_PORTS_WEB": "65536"}, "65535"),
        ({"CORRAL_PORTS_WEB": "0"}, "65535"),
    ],
)
def test_a_range_or_port_that_is_none_changes_nothing(
    git_repo: Path, state_dir: Path, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        bring_up(git_repo, **variables)
    assert registry_is_empty(state_dir)


@pytest.mark.parametrize("name", ["", "a b", "../x", "1", "web\nX=1", "x" * 300, "日本"])
def test_a_hostile_name_of_a_port_changes_nothing(
    git_repo: Path, state_dir: Path, name: str
) -> None:
    with pytest.raises(UsageError):
        bring_up(git_repo, Request(ports=(PortWish(name),)))
    assert registry_is_empty(state_dir)


def test_a_kept_port_is_told_when_another_is_preferred_now(git_repo: Path, free: int) -> None:
    first = ports_of(git_repo, request=Request(ports=(PortWish("web"),)))
    done = bring_up(git_repo, Request(ports=(PortWish("web", free),)))
    assert done.environment["ports"] == first
    assert any("corral port release web" in words for words in done.words)


def test_udp_and_tcp_of_one_number_are_two_claims(git_repo: Path, free: int) -> None:
    (git_repo / "corral.toml").write_text(
        f'[ports]\nweb = {free}\ndns = {{ preferred = {free}, protocol = "udp" }}\n'
    )
    assert ports_of(git_repo) == {"web": free, "dns": free}


def test_a_udp_port_in_use_is_not_dealt(git_repo: Path, free: int) -> None:
    (git_repo / "corral.toml").write_text(
        f'[ports]\ndns = {{ preferred = {free}, protocol = "udp" }}\n'
    )
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
        stranger.bind(("127.0.0.1", free))
        assert ports_of(git_repo)["dns"] != free


def test_with_an_address_of_its_own_a_worktree_keeps_every_default_port(
    git_repo: Path, worktree: Callable[[str], Path], free: int
) -> None:
    (git_repo / "corral.toml").write_text(f"[ports]\nweb = {free}\n")
    assert ports_of(git_repo) == {"web": free}
    found = []
    for name in ("one", "two"):
        (tree := worktree(name)).joinpath("corral.toml").write_text(f"[ports]\nweb = {free}\n")
        view = bring_up(tree, Request(address=True)).environment
        assert view["ports"] == {"web": free}
        assert variables_in(tree)["HOST"] == view["address"]
        found.append(view["address"])
        assert bring_up(tree).environment["address"] == view["address"]
    assert len(set(found)) == 2
    assert all(a.startswith("127.") and not a.startswith("127.0.") for a in found)
    with closing(listener(free, found[0])), closing(listener(free, found[1])):
        pass


def test_a_wildcard_listener_blocks_the_port_on_every_address(git_repo: Path, free: int) -> None:
    with closing(listener(free, "0.0.0.0")):
        wish = Request(ports=(PortWish("web", free),), address=True)
        assert bring_up(git_repo, wish).environment["ports"]["web"] != free


def test_a_pool_in_the_ephemeral_range_is_warned_of(git_repo: Path) -> None:
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = file.read().split()[0]
    done = bring_up(git_repo, CORRAL_POOL_LAST=first)
    assert any("ephemeral range" in words for words in done.words)
    assert not any("ephemeral range" in words for words in bring_up(git_repo).words)


def test_variables_are_named_after_their_ports(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[ports]\nmy-api = {}\nweb = { env = "HTTP" }\n')
    ports = ports_of(git_repo)
    assert variables_in(git_repo) == {
        "MY_API_PORT": str(ports["my-api"]),
        "HTTP": str(ports["web"]),
    }


def test_a_sole_port_is_also_called_port(git_repo: Path) -> None:
    ports = ports_of(git_repo, request=Request(ports=(PortWish("web"),)))
    assert variables_in(git_repo) == {"WEB_PORT": str(ports["web"]), "PORT": str(ports["web"])}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ports]\nweb={}\n[vars]\nPORT='1'", "vars.PORT"),
        ("[database]\nisolation='file'\n[vars]\nDATABASE_URL='x'", "vars.DATABASE_URL"),
        ("[vars]\nA='${ports.nothing}'", "vars.A"),
        ("[vars]\nA='${database.url}'", "vars.A"),
        ("[vars]\nA='${'", "not closed"),
        ('[vars]\nA=\'x\\u0007\'\nB="""a\'\\\\\\\\$b"""', "variable B"),
        ('[vars]\nUP="""a\n# >>> corral x\n"""', "mark"),
        ("[database]\nisolation='schema'", "database.url"),
        ("[database]\nisolation='database'\nurl='mysql://x/y'", "PostgreSQL"),
        ("[database]\nisolation='file'\nseed='missing.sqlite3'", "missing.sqlite3"),
        ("[compose]\nfiles=['missing.yaml']", "missing.yaml"),
    ],
)
def test_what_cannot_be_is_found_before_anything_is_changed(
    git_repo: Path, state_dir: Path, text: str, message: str
) -> None:
    (git_repo / "corral.toml").write_text(text)
    before = sorted(os.listdir(git_repo))
    with pytest.raises((ConfigurationError, InvalidValueError), match=message) as caught:
        bring_up(git_repo)
    assert caught.value.exit_status == 2
    assert registry_is_empty(state_dir)
    assert sorted(os.listdir(git_repo)) == before


def test_a_dead_holders_claim_is_dealt_again(git_repo: Path, free: int) -> None:
    import subprocess
    import sys

    from corral.services import port_claims

    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    context = context_of(git_repo)
    wishes = [PortWish("web", free)]
    claimed = port_claims.claim(context, wishes, count=None, holder=child.pid)
    assert claimed.ports[0].number == free
    wish = Request(ports=(PortWish("web", free),))
    assert bring_up(git_repo, wish).environment["ports"]["web"] != free
    child.communicate(b"\n")
    with pytest.raises(CorralError):
        port_claims.claim(context, wishes, count=None, holder=child.pid)
    other = Request(ports=(PortWish("other", free),))
    assert bring_up(git_repo, other).environment["ports"]["other"] == free
