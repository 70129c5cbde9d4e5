"""PostgreSQL binds over the port that corral holds, and again after a restart."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command import COMMAND, ask
from support.engines import find_program
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.processes import Tracker

_NOBODY = 65534


def _unprivileged() -> tuple[str, ...]:
    """What stands before a program that refuses to be root."""
    if os.geteuid() != 0:
        return ()
    return ("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups")


def _program(name: str) -> str:
    found = find_program(name)
    assert found is not None
    return os.path.realpath(found)


@pytest.fixture
def cluster(require_engine: Callable[[str], None]) -> Iterator[Path]:
    """A fresh cluster that the unprivileged account owns, where that account may go."""
    require_engine("postgres")
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/var/tmp") as made:
        directory = Path(made)
        if os.geteuid() == 0:
            os.chown(directory, _NOBODY, _NOBODY)
        subprocess.run(
            [*_unprivileged(), _program("initdb"), "-D", directory / "data", "-A", "trust", "-N"],
            cwd="/", check=True, capture_output=True,
        )  # fmt: skip
        yield directory


@pytest.mark.parametrize("shell", [False, True], ids=["direct", "shell"])
def test_it_binds_over_a_held_port_and_again_after_a_restart(
    cluster: Path, private_root: Path, track: Tracker, shell: bool
) -> None:
    server = (
        *_unprivileged(), _program("postgres"), "-D", str(cluster / "data"), "-p", "{port}",
        "-h", "{host}", "-k", str(cluster), "-F",
    )  # fmt: skip
    argv = ("sh", "-c", f"exec {' '.join(server)}") if shell else server
    for _ in range(2):
        process = track.spawn(
            [*COMMAND, "run", "--port", "db", "--wait-ready", "40", "--", *argv],
            cwd=private_root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        eventually(lambda: _answers(_port(private_root)), seconds=40)
        process.send_signal(signal.SIGINT)
        words, _ = process.communicate(timeout=30)
        assert process.returncode == 0, words
        assert b"cannot" not in words


def _port(place: Path) -> int:
    environment = ask(place, "status")["environment"]
    return int(environment["ports"].get("db", 0)) if environment else 0


def _answers(port: int) -> bool:
    """Whether something answers a request for encryption, as PostgreSQL alone does."""
    if not port:
        return False
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big"))
            return connection.recv(1) in {b"N", b"S"}
    except ConnectionRefusedError:
        return False
