"""The pytest plugin: ports that no other worker gets, and an environment that leaves nothing.

`corral_port` is a port for one test, `corral_ports` a run of ports for each xdist worker, and
`corral_environment` an environment in a temporary directory, proven empty at the end of the test.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corral.integrations.temporary_environment import TemporaryEnvironment
    from corral.services.allocations import EphemeralPort, PortRun

_COUNT = "corral_ports"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `corral_ports`."""
    parser.addini(_COUNT, "ports in a row for each worker (fixture corral_ports)", default="10")


@pytest.fixture
def corral_port(request: pytest.FixtureRequest) -> Iterator[EphemeralPort]:
    """A free port, claimed and held for this test: `.port`, and `.held` to let go of it earlier.

    A server that sets SO_REUSEADDR listens over the held port; for another one call
    `corral_port.held.release()` right before it starts.
    """
    from corral.services.allocations import allocate_ephemeral_port

    with _told():
        given = allocate_ephemeral_port(f"pytest {request.node.nodeid}"[:1000])
    with given:
        yield given


@pytest.fixture(scope="session")
def corral_ports(request: pytest.FixtureRequest) -> Iterator[PortRun]:
    """Free ports in a row for this xdist worker, or for the only one: `.ports`, `.held`.

    How many: the setting `corral_ports` (10).
    """
    from corral.services.allocations import allocate_port_run

    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    count = _count(request.config)
    with _told():
        run = allocate_port_run(count, f"pytest {worker}")
    with run:
        yield run


def _count(config: pytest.Config) -> int:
    text = str(config.getini(_COUNT))
    if not (text.isascii() and text.isdigit() and int(text)):
        pytest.fail(
            f"{_COUNT} = {text} in pytest's configuration: expected how many ports each worker "
            "gets, as a number from 1 up",
            pytrace=False,
        )
    return int(text)


@contextmanager
def _told() -> Iterator[None]:
    """What corral refuses, as its own words with the remedy instead of a traceback through it."""
    from corral.errors import CorralError

    try:
        yield
    except CorralError as error:
        remedy = f"\n  {error.remedy}" if error.remedy else ""
        pytest.fail(f"corral: {error.message}{remedy}", pytrace=False)


@pytest.fixture
def corral_environment(tmp_path: Path) -> Iterator[TemporaryEnvironment]:
    """An environment of this test's own in `tmp_path`: `.path`, `.environment`, `.environ`.

    At the end everything in it is taken down; the test fails if anything is left, or if that
    cannot be told.
    """
    from corral.integrations.temporary_environment import TemporaryEnvironment

    with _told():
        made = TemporaryEnvironment(tmp_path)
    yield made
    with _told():
        left = made.take_down()
    if left:
        pytest.fail("the environment is not empty:\n  " + "\n  ".join(left), pytrace=False)
