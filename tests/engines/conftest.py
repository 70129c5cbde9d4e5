"""Real engines, each started here with private directories and sockets and ended by pid.

A test that needs an engine says so first: `require_engine("docker")`. The session fixtures that
start engines live in `tests/support/`, one file per engine, and are imported here by name. All of
`test_<engine>*.py` runs in one worker (`support.scheduling`), so that each engine is started once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import engines
from support.container_engines import (  # noqa: F401 # fixtures
    compose,
    docker,
    docker_daemon,
    podman,
    podman_store,
    second_docker,
)
from support.firecracker import guest_kernel, machine  # noqa: F401 # fixtures

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def require_engine() -> Callable[[str], None]:
    """`require_engine(name)`: see `support.engines.require_engine`."""
    return engines.require_engine
