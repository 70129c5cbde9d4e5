"""What is being created right now, as an intent alone shows it."""

from __future__ import annotations

from corral.model.resource import Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.record import Record


def being_created(record: Record, backend: str) -> Sighting:
    """The sighting of an intent whose creator is at work; it is kept."""
    return Sighting(
        kind=record.kind,
        id=record.id,
        name=record.name,
        backend=backend,
        state="creating",
        created_at=record.created_at,
        identity=(("record", record.id),),
        creating=True,
        record=record.id,
    )
