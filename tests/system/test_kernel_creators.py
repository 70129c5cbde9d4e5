"""Whether an intent's creator is at work: what cannot be told counts as at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corral.kernel.creators import at_work
from corral.kernel.identity import identify, own_identity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.model.process import ProcessIdentity
    from support.processes import Tracker


def intent(creator: ProcessIdentity | None, state: RecordState = RecordState.INTENT) -> Record:
    """A record that `creator` wrote."""
    return Record(
        id="rec-1",
        kind=Kind.CONTAINER,
        backend="docker",
        role="",
        name="",
        owner="own-1",
        session=None,
        environment=None,
        state=state,
        identity=(),
        creator=creator,
        created_at=0.0,
    )


def test_a_creator_that_lives_is_at_work_until_the_record_is_live() -> None:
    assert at_work(intent(own_identity()))
    assert not at_work(intent(own_identity(), RecordState.LIVE))
    assert not at_work(intent(None))


def test_a_creator_that_ended_is_not_at_work(track: Tracker) -> None:
    process = track.spawn(["sleep", "600"])
    creator = identify(process.pid)
    assert at_work(intent(creator))
    process.kill()
    process.wait()
    assert not at_work(intent(creator))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda own: own._replace(boot_id="00000000-0000-0000-0000-000000000000"), False),
        (lambda own: own._replace(start_ticks=1, pidfd_inode=1), False),
        (lambda own: own._replace(pid_namespace=1), True),
    ],
    ids=["another boot", "a recycled pid", "another pid namespace"],
)
def test_what_a_creator_was_is_compared_as_a_whole(
    changed: Callable[[ProcessIdentity], ProcessIdentity], *, expected: bool
) -> None:
    assert at_work(intent(changed(own_identity()))) is expected
