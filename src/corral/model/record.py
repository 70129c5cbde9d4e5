"""Records: intents written before anything is created, and what became of them."""

from __future__ import annotations

from enum import Enum

from corral.model.process import ProcessIdentity
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple


class RecordState(Enum):
    """intent: about to be created; live: created and identified; ended: verified gone."""

    INTENT = "intent"
    LIVE = "live"
    ENDED = "ended"


class Record(NamedTuple):
    """One row about a resource.

    `identity` are the pinned pairs (empty for an intent), `creator` the process that wrote it,
    `detail` a JSON object in text with what the backend needs later (command, log, endpoint).
    `role`: "service" (named or not, started by corral run), "supervisor", "descendant",
    "adopted", or the backend's own word.
    """

    id: str
    kind: Kind
    backend: str
    role: str
    name: str
    owner: str
    session: str | None
    environment: str | None
    state: RecordState
    identity: tuple[tuple[str, str | int], ...]
    creator: ProcessIdentity | None
    created_at: float
    detail: str = "{}"


class BadRecord(NamedTuple):
    """A row or file that could not be understood: kept, shown, and in nobody's way."""

    where: str
    id: str
    reason: str


class Event(NamedTuple):
    """One line of the journal."""

    id: int
    at: float
    action: str
    kind: str
    resource: str
    name: str
    owner: str | None
    environment: str | None
    trigger: str
    proof: str
    detail: str
