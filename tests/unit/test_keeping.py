"""What `corral keep` has named: itself, and what a process of it has started."""

from __future__ import annotations

import pytest

from corral.decide.keeping import is_kept
from corral.model.resource import Kind, Sighting


def _process(pid: int, *above: tuple[int, int], boot: str = "b") -> Sighting:
    identity = (("pid", pid), ("start_ticks", 5), ("boot_id", boot), ("pid_namespace", 7))
    base = Sighting(Kind.PROCESS, str(pid), "name", "process", "running", 1.0, identity, ())
    return base._replace(ancestors=above)


KEPT = ("process", _process(10).keep_id)


@pytest.mark.parametrize(
    ("sighting", "named", "expected"),
    [
        (_process(10), {KEPT}, True),
        (_process(11, (10, 5), (1, 1)), {KEPT}, True),
        (_process(11, (10, 6), (1, 1)), {KEPT}, False),
        (_process(11, (12, 5)), {KEPT}, False),
        (_process(11), {KEPT}, False),
        (_process(11, (10, 5), boot="another"), {KEPT}, False),
        (_process(11, (10, 5)), {("container", KEPT[1])}, False),
        (_process(11, (10, 5)), {("process", "10@5")}, False),
        (_process(10), set(), False),
    ],
)
def test_a_process_is_kept_by_itself_or_by_what_it_descends_from(
    sighting: Sighting, named: set[tuple[str, str]], expected: object
) -> None:
    assert is_kept(sighting, named) is expected


def test_anything_else_is_kept_by_itself_alone() -> None:
    identity = (("id", "c1"),)
    box = Sighting(Kind.CONTAINER, "c1", "box", "docker", "running", 1.0, identity, ())
    assert is_kept(box, {("container", "c1")})
    assert not is_kept(box, {KEPT})
