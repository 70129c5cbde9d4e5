"""The Python API as a program meets it: wrong values are refused, and values can be read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

import corral

if TYPE_CHECKING:
    from pathlib import Path


def test_an_environment_names_its_directory_and_a_status_its_counts(private_home: Path) -> None:
    environment = corral.Environment.open(private_home)
    assert repr(environment) == f"Environment({str(private_home)!r})"
    assert repr(environment.status()).startswith("Status(0 owned, 0 kept, ")


def test_a_held_port_says_its_number_and_whether_it_is_held() -> None:
    with corral.allocate_ephemeral_port() as allocated:
        assert repr(allocated.held).startswith(f"HeldPort({allocated.port}, 0.0.0.0")
    assert repr(allocated.held) == f"HeldPort({allocated.port}, not held)"


def test_a_lock_says_its_name_its_fence_and_whether_it_is_held() -> None:
    mutex = corral.acquire_conductor_mutex("v1.0", scope="machine")
    assert mutex is not None
    assert repr(mutex) == f"HeldLock('1.0', fence {mutex.fence}, held)"
    mutex.release()
    assert repr(mutex) == f"HeldLock('1.0', fence {mutex.fence}, not held)"


@pytest.mark.parametrize("number", [0, -1, 70000, "8000", True, 80.0])
def test_a_preferred_port_that_is_none_is_refused_and_nothing_claimed(
    private_home: Path, number: Any
) -> None:
    environment = corral.Environment.open(private_home)
    with pytest.raises(corral.InvalidValueError, match="web"):
        environment.claim_ports("api", web=number)
    assert environment.status().environment is None


@pytest.mark.parametrize("age", [-1.0, math.nan])
def test_an_age_that_is_none_is_refused(age: float) -> None:
    with pytest.raises(corral.InvalidValueError, match="older_than"):
        corral.prepare_cleanup(older_than=age)


def test_ports_are_claimed_by_name_and_by_preference(private_home: Path) -> None:
    claimed = corral.Environment.open(private_home).claim_ports("api", web=20473)
    assert set(claimed) == {"api", "web"}
    assert claimed["web"] == 20473
