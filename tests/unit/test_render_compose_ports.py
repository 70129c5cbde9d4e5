from __future__ import annotations

from typing import Any

import pytest

from corral.render.compose_ports import (
    WIDEST,
    ContainerPort,
    PortRange,
    UnreadablePortError,
    read_port,
)


def _read(entry: Any, environ: dict[str, str] | None = None) -> Any:
    return read_port(entry, environ or {}, environ or {})


@pytest.mark.parametrize(
    ("entry", "ports"),
    [
        ("80", [(80, "tcp", None)]),
        (80, [(80, "tcp", None)]),
        ("8080:80", [(80, "tcp", 8080)]),
        ("127.0.0.1:8080:80", [(80, "tcp", 8080)]),
        ("127.0.0.1::80", [(80, "tcp", None)]),
        ("[::1]:8080:80", [(80, "tcp", 8080)]),
        ("::1:8080:80", [(80, "tcp", 8080)]),
        ("8080:80/udp", [(80, "udp", 8080)]),
        ("8080:80/UDP", [(80, "udp", 8080)]),
        ("3000-3001", [(3000, "tcp", None), (3001, "tcp", None)]),
        ("9090-9091:80-81", [(80, "tcp", 9090), (81, "tcp", 9091)]),
        ("8000-9000:80", [(80, "tcp", 8000)]),
        ({"target": 80}, [(80, "tcp", None)]),
        ({"target": "80", "published": "8080", "protocol": "udp"}, [(80, "udp", 8080)]),
        ({"target": 80, "published": "8000-8010"}, [(80, "tcp", 8000)]),
        ({"target": 80, "published": None, "protocol": None}, [(80, "tcp", None)]),
    ],
)
def test_every_syntax_is_read(entry: Any, ports: list[tuple[int, str, int | None]]) -> None:
    assert [tuple(port)[:3] for port in _read(entry)] == ports


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "abc",
        "80:abc",
        "0",
        "65536",
        "70000:80",
        "81-80",
        "80/icmp",
        "1234567890",
        "٨٠",
        True,
        None,
        1.5,
        ["80"],
        {},
        {"target": "x"},
        {"target": 80, "protocol": "x"},
    ],
)
def test_what_is_no_mapping_is_an_error(entry: Any) -> None:
    with pytest.raises(UnreadablePortError, match=r"is no (port|protocol)"):
        _read(entry)


def test_a_range_that_is_too_wide_stays_one() -> None:
    assert len(_read(f"1000-{999 + WIDEST}")) == WIDEST
    assert _read(f"1000-{1000 + WIDEST}/udp") == PortRange(1000, 1000 + WIDEST, "udp")


def test_a_container_port_with_variables_is_kept_as_written() -> None:
    assert _read("1:${P:-80}") == (ContainerPort(80, "tcp", 1, "${P:-80}"),)
    assert _read({"target": "${P:-80}"}) == (ContainerPort(80, "tcp", None, "${P:-80}"),)
    assert _read("${P:-80}:${P:-80}/udp", {"P": "9"}) == (ContainerPort(9, "udp", 9, "${P:-80}"),)
    assert _read("${M:-1:80}") == (ContainerPort(80, "tcp", 1, ""),)
    assert [port.expression for port in _read("${R:-80-81}")] == ["", ""]


def test_a_variable_that_the_override_would_see_otherwise_is_not_kept() -> None:
    assert read_port("1:${P:-80}", {"P": "9"}, {}) == (ContainerPort(9, "tcp", 1, ""),)
