"""The texts of /proc/net/tcp and tcp6."""

from __future__ import annotations

import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import EnumerationError
from corral.kernel.listening import decode_address, parse_sockets

_TABLE = b"""\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1
   1: 0100007F:1F90 0100007F:D431 06 00000000:00000000 03:00001770 00000000     0        0 0 3
"""

little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="written for little-endian")


def written(family: socket.AddressFamily, address: str) -> bytes:
    """An address as the kernel writes it on this machine."""
    raw = socket.inet_pton(family, address)
    words = [int.from_bytes(raw[n : n + 4], sys.byteorder) for n in range(0, len(raw), 4)]
    return "".join(f"{word:08X}" for word in words).encode()


def test_lines_are_read_with_state_and_inode() -> None:
    assert list(parse_sockets(_TABLE)) == [
        (b"0100007F", 8080, b"0A", 4242),
        (b"0100007F", 8080, b"06", 0),
    ]
    assert list(parse_sockets(b"")) == []


@pytest.mark.parametrize(
    "line", [b"nonsense", b"0: 0100007F 0:0 0A", b" 0: 1:zz 0:0 0A 0 0 0 0 0 1"]
)
def test_an_odd_line_is_a_failed_look(line: bytes) -> None:
    with pytest.raises(EnumerationError):
        list(parse_sockets(b"heading\n" + line + b"\n"))


@little_endian
@pytest.mark.parametrize(
    ("text", "address"),
    [
        (b"0100007F", "127.0.0.1"),
        (b"00000000", "0.0.0.0"),
        (b"0302017F", "127.1.2.3"),
        (b"00000000000000000000000000000000", "::"),
        (b"00000000000000000000000001000000", "::1"),
        (b"B80D01200000000000000000EFBEADDE", "2001:db8::dead:beef"),
        (b"0000000000000000FFFF00000100007F", "127.0.0.1"),
    ],
)
def test_addresses_are_decoded(text: bytes, address: str) -> None:
    assert decode_address(text) == address


@given(st.ip_addresses())
def test_any_address_comes_back(address: object) -> None:
    text = str(address)
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    found = decode_address(written(family, text))
    if found.count(".") == 3 and family == socket.AF_INET6 and text.startswith("::ffff:"):
        assert socket.inet_pton(family, "::ffff:" + found) == socket.inet_pton(family, text)
    else:
        assert socket.inet_pton(family, found) == socket.inet_pton(family, text)
