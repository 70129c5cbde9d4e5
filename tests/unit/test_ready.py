"""A server is ready when its own listener is on its port, and not otherwise."""

from __future__ import annotations

import pytest

from corral.decide.ready import (
    Heard,
    Wanted,
    concerns,
    describe_port,
    describe_socket,
    reaches,
    sort_out,
)

_HOST = "127.0.0.1"
_WEB, _API = Wanted("web", 22001), Wanted("api", 22002)


def _ours(port: int, address: str = _HOST) -> Heard:
    return Heard(address, port, port * 10, ours=True)


def _theirs(port: int, address: str = _HOST) -> Heard:
    return Heard(address, port, port * 10 + 1, ours=False)


def test_a_port_that_nobody_listens_on_is_silent() -> None:
    seen = sort_out((_WEB,), _HOST, ())
    assert seen.silent == (_WEB,)
    assert not seen.ready


@pytest.mark.parametrize("address", [_HOST, "0.0.0.0", "::"])
def test_our_own_listener_makes_it_ready(address: str) -> None:
    seen = sort_out((_WEB,), _HOST, (_ours(22001, address),))
    assert seen.ready
    assert seen.detours == ()


def test_every_wanted_port_must_listen() -> None:
    seen = sort_out((_WEB, _API), _HOST, (_ours(22001),))
    assert seen.silent == (_API,)
    assert not seen.ready


def test_a_foreign_listener_is_never_ready() -> None:
    seen = sort_out((_WEB,), _HOST, (_theirs(22001),))
    assert seen.foreign == (_theirs(22001),)
    assert seen.silent == ()
    assert not seen.ready


def test_a_server_that_hopped_is_seen_elsewhere() -> None:
    seen = sort_out((_WEB,), _HOST, (_ours(22003), _theirs(22004)))
    assert seen.elsewhere == (_ours(22003),)
    assert not seen.ready


def test_a_second_port_of_a_ready_server_is_no_hop() -> None:
    seen = sort_out((_WEB,), _HOST, (_ours(22001), _ours(9229)))
    assert seen.ready
    assert seen.elsewhere == (_ours(9229),)


def test_a_listener_on_the_second_loopback_alone_is_ready_by_a_detour() -> None:
    seen = sort_out((_WEB,), _HOST, (_ours(22001, "::1"),))
    assert seen.ready
    assert seen.detours == ((_WEB, "::1"),)


def test_a_listener_that_answers_at_both_takes_no_detour() -> None:
    seen = sort_out((_WEB,), _HOST, (_ours(22001, "::1"), _ours(22001)))
    assert seen.ready
    assert seen.detours == ()


def test_a_foreign_listener_on_the_second_loopback_does_not_hide_ours() -> None:
    assert sort_out((_WEB,), _HOST, (_theirs(22001, "::1"), _ours(22001))).ready


def test_an_address_of_its_own_is_not_served_by_others() -> None:
    seen = sort_out((_WEB,), "127.1.2.3", (_theirs(22001), _theirs(22001, "::1")))
    assert seen.silent == (_WEB,)
    assert sort_out((_WEB,), "127.1.2.3", (_ours(22001, "127.1.2.3"),)).ready


def test_what_reaches_an_address() -> None:
    assert reaches("127.1.2.3", "127.1.2.3")
    assert not reaches("127.0.0.2", _HOST)
    assert not reaches("::1", _HOST)
    assert concerns("::1", _HOST)
    assert not concerns("::1", "127.1.2.3")
    assert not concerns("192.168.0.1", _HOST)


def test_how_a_socket_and_a_port_are_written() -> None:
    assert describe_socket(_ours(22001)) == "127.0.0.1:22001"
    assert describe_socket(_ours(22001, "::1")) == "[::1]:22001"
    assert describe_port(_WEB) == "22001 (web)"
