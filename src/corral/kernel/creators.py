"""Whether the process that wrote an intent may still be at work on what it announced."""

from __future__ import annotations

from corral.kernel import clock, identity
from corral.model.process import Presence
from corral.model.record import RecordState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.record import Record


def at_work(record: Record) -> bool:
    """Whether the record is an intent whose creator is not proven gone.

    What is being created is kept, so what cannot be told counts as at work.
    """
    if record.state is not RecordState.INTENT or record.creator is None:
        return False
    presence, _ = identity.presence(record.creator, boot_id=clock.boot_id())
    return presence is not Presence.GONE
