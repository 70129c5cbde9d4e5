from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.backends.engine import wire
from corral.backends.engine.states import EngineDownError, EngineError, EngineHungError

if TYPE_CHECKING:
    from collections.abc import Sequence


def receive(*pieces: bytes, seconds: float = 5.0) -> wire.Response:
    """What is understood of an answer that arrives in these pieces, then ends."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=_write, args=(theirs, pieces))
        writer.start()
        try:
            return wire.Wire(ours, "engine", time.monotonic() + seconds).receive()
        finally:
            ours.close()
            writer.join()


def _write(target: socket.socket, pieces: Sequence[bytes]) -> None:
    try:
        for piece in pieces:
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the reader had enough
        return


def test_a_body_by_length() -> None:
    said = receive(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nApi-Version: 1.41\r\n\r\nOK")
    assert said == (200, {"content-length": "2", "api-version": "1.41"}, b"OK")


def test_a_body_up_to_the_end() -> None:
    assert receive(b"HTTP/1.0 500 No\r\n\r\nwo", b"rds").body == b"words"


def test_no_body_where_none_can_be() -> None:
    assert receive(b"HTTP/1.1 204 No Content\r\n\r\n") == (204, {}, b"")


def test_an_interim_answer_is_passed_over() -> None:
    said = receive(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert said.status == 200


@given(st.binary(max_size=2000), st.integers(1, 50), st.integers(1, 40))
def test_chunks_come_back_whole_however_they_are_cut(body: bytes, chunk: int, piece: int) -> None:
    text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for start in range(0, len(body), chunk):
        part = body[start : start + chunk]
        text += b"%X;note\r\n%s\r\n" % (len(part), part)
    text += b"0\r\nTrailer: x\r\n\r\n"
    said = receive(*(text[at : at + piece] for at in range(0, len(text), piece)))
    assert said.body == body


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nOK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nOK\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFF\r\n",
        b"x" * 200_000,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 40_000 + b"\r\n",
    ],
)
def test_what_is_no_http_is_a_failed_look(text: bytes) -> None:
    with pytest.raises(EngineError, match="no HTTP"):
        receive(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ],
)
def test_an_answer_that_breaks_off_is_never_a_short_answer(text: bytes) -> None:
    with pytest.raises(EngineDownError, match="closed the connection"):
        receive(text)


def test_silence_has_a_time_limit() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(EngineHungError, match="does not answer"):
        wire.Wire(ours, "engine", time.monotonic() + 0.1).receive()


def test_a_slow_drip_has_the_same_time_limit() -> None:
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def drip() -> None:
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not over.wait(0.01):
            theirs.sendall(b"x")

    writer = threading.Thread(target=drip)
    writer.start()
    before = time.monotonic()
    try:
        with pytest.raises(EngineHungError):
            wire.Wire(ours, "engine", before + 0.4).receive()
        assert time.monotonic() - before < 2
    finally:
        over.set()
        writer.join()
        ours.close()
        theirs.close()


def test_sending_has_a_time_limit_too() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(EngineHungError):
        wire.Wire(ours, "engine", time.monotonic() + 0.2).send(b"x" * 20_000_000)


def test_an_engine_that_is_gone_while_one_sends_is_down() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(EngineDownError, match="closed the connection"):
        wire.Wire(ours, "engine", time.monotonic() + 5).send(b"x")


def test_requests_say_how_long_they_are() -> None:
    assert wire.request("GET", "/x") == (
        b"GET /x HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n"
    )
    assert b"Content-Length: 0\r\n" in wire.request("POST", "/x")
    assert wire.request("POST", "/x", b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")
