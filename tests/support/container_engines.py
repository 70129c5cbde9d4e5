"""Fixtures of container engines, imported by name into tests/engines/conftest.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.dockerd import Dockerd
from support.engines import find_program, require_engine
from support.podman import Podman

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def docker_daemon() -> Iterator[Dockerd]:
    """One private Docker daemon for all tests of this worker."""
    require_engine("docker")
    daemon = Dockerd()
    try:
        yield daemon.start()
    finally:
        daemon.stop()


@pytest.fixture
def docker(docker_daemon: Dockerd) -> Iterator[Dockerd]:
    """The private daemon, empty but for its image, and emptied after the test."""
    yield docker_daemon
    docker_daemon.clear()


@pytest.fixture
def second_docker() -> Iterator[Dockerd]:
    """Another private daemon, for this test only."""
    require_engine("docker")
    daemon = Dockerd()
    try:
        yield daemon.start()
    finally:
        daemon.clear()
        daemon.stop()


@pytest.fixture(scope="session")
def podman_store() -> Iterator[Podman]:
    """One private Podman with its service for all tests of this worker."""
    require_engine("podman")
    store = Podman()
    try:
        yield store.start()
    finally:
        store.stop()


@pytest.fixture
def podman(podman_store: Podman) -> Iterator[Podman]:
    """The private Podman, empty but for its image, and emptied after the test."""
    yield podman_store
    podman_store.clear()


@pytest.fixture
def compose() -> str:
    """The program of Compose v2."""
    require_engine("compose")
    program = find_program("docker-compose")
    assert program is not None
    return program
