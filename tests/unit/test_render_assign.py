from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.errors import CorralError, InvalidValueError
from corral.render.assign import assign_port
from support import hostile


def test_the_documented_call() -> None:
    port = assign_port(worktree_id="fb563322", taken=[8000, 8001, 8002], base=8000)
    assert 8000 <= port < 8200
    assert port not in {8000, 8001, 8002}


def test_the_port_is_pinned_for_all_time() -> None:
    assert assign_port("fb563322") == 8067


def test_it_is_the_same_in_every_process() -> None:
    code = "from corral.render.assign import assign_port; print(assign_port('fb563322'))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed == [f"{assign_port('fb563322')}\n"] * 2


@given(
    hostile.ids,
    st.integers(1, 65535),
    st.integers(1, 300),
    st.sets(st.integers(1, 65535), max_size=40),
)
def test_a_port_is_in_the_range_and_not_taken(
    worktree_id: str, base: int, size: int, taken: set[int]
) -> None:
    free = set(range(base, min(base + size, 65536))) - taken
    if free:
        assert assign_port(worktree_id, taken, base, size) in free
    else:
        with pytest.raises(InvalidValueError, match="no free port"):
            assign_port(worktree_id, taken, base, size)


def test_the_only_free_port_is_found_and_none_is_an_error() -> None:
    assert assign_port("wt", taken=range(9000, 9199), base=9000) == 9199
    with pytest.raises(InvalidValueError, match=r"no free port in \[9000, 9200\)") as caught:
        assign_port("wt", taken=range(9000, 9200), base=9000)
    assert isinstance(caught.value, CorralError)
    assert isinstance(caught.value, ValueError)


def test_a_range_ends_with_the_last_port() -> None:
    assert assign_port("wt", base=65535) == 65535
    assert {assign_port(f"wt{n}", base=65534) for n in range(50)} == {65534, 65535}


def test_the_kernel_is_asked_where_a_probe_is_given() -> None:
    asked: list[int] = []

    def probe(port: int) -> bool:
        asked.append(port)
        return len(asked) == 3

    assert assign_port("wt", base=9000, probe=probe) == asked[-1]
    assert len(set(asked)) == 3
    with pytest.raises(InvalidValueError, match="no free port"):
        assign_port("wt", probe=lambda _port: False)


def test_worktrees_tend_to_differ() -> None:
    assert len({assign_port(f"wt-{n}") for n in range(20)}) > 15


@pytest.mark.parametrize(
    "arguments",
    [
        {"worktree_id": ""},
        {"worktree_id": "  "},
        {"base": 0},
        {"base": 65536},
        {"base": "8000"},
        {"base": True},
        {"max_search": 0},
        {"max_search": -1},
        {"max_search": 1.5},
        {"max_search": True},
        {"taken": ["8000"]},
        {"taken": [0]},
        {"namespace": "A B"},
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        assign_port(**{"worktree_id": "wt", **arguments})  # type: ignore[arg-type]
