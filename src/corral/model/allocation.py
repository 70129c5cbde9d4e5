"""Ports that processes have claimed for themselves."""

from __future__ import annotations

from corral.model.process import Presence, ProcessIdentity
from corral.model.tuples import NamedTuple


class Allocation(NamedTuple):
    """A port that is claimed by a process.

    `worker_id`: what the claimant calls itself; it is data and gives no right. `holder`: the
    process whose death ends the claim. `created_at`: unix seconds. `presence`: what was proven of
    the holder when this was read.
    """

    worker_id: str
    port: int
    protocol: str
    holder: ProcessIdentity
    created_at: float
    presence: Presence = Presence.ALIVE
