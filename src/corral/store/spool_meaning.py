"""What the entries of the spool change: in the registry, and in a reading of it beforehand."""

from __future__ import annotations

from corral.decide.hooks import ended_epochs, journal_line, payload_in
from corral.model.hook import Heard
from corral.model.owner import Epoch
from corral.model.record import Event
from corral.store import journal, owners, sessions, spooled
from corral.store.sessions import Begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from corral.model.owner import Owner
    from corral.store.spooled import Entry


def apply(conn: Connection, entry: Entry) -> None:
    """Do to the registry what an entry says, within the transaction that is open."""
    if isinstance(entry, spooled.Release):
        owners.release(conn, entry.owner, epoch_id=entry.epoch, now=entry.at, why=entry.why)
    elif isinstance(entry, Heard):
        _hear(conn, entry)
    elif isinstance(entry, Begun):
        sessions.begin(conn, entry)
    else:
        journal.append(conn, **entry._asdict())


def _hear(conn: Connection, heard: Heard) -> None:
    payload = payload_in(heard.content)
    owner = owners.by_session(conn, payload.session) if payload is not None else None
    epochs = ended_epochs(payload, owner, heard.caller)
    for epoch in epochs:
        owners.release(conn, epoch.owner, epoch_id=epoch.id, now=heard.at, why=_why(heard))
    line = journal_line(
        payload,
        heard.agent,
        heard.at,
        owner=owner.id if owner is not None else None,
        environment=epochs[-1].environment if epochs else None,
    )
    journal.append(conn, **line)


def _why(heard: Heard) -> str:
    payload = payload_in(heard.content)
    return f"{heard.agent}: {payload.why or 'ended' if payload is not None else 'ended'}"


def overlaid(known: Iterable[Owner], entry: Entry) -> tuple[Owner, ...]:
    """The owners as they will be once an entry is applied; an owner that it would mint is not."""
    if isinstance(entry, spooled.Release):
        return tuple(_released(owner, entry) for owner in known)
    if isinstance(entry, Heard):
        return tuple(_heard(owner, entry) for owner in known)
    if isinstance(entry, Begun):
        return tuple(_begun(owner, entry) for owner in known)
    return tuple(known)


def _released(owner: Owner, entry: spooled.Release) -> Owner:
    if owner.id != entry.owner:
        return owner
    meant = [e.id for e in owner.epochs if entry.epoch in {None, e.id}]
    return _with_released(owner, meant, entry.at, entry.why)


def _with_released(owner: Owner, meant: Iterable[int], at: float, why: str) -> Owner:
    ids = frozenset(meant)
    return owner._replace(
        epochs=tuple(
            epoch._replace(released_at=at, released_why=why)
            if epoch.released_at is None and epoch.id in ids
            else epoch
            for epoch in owner.epochs
        )
    )


def _heard(owner: Owner, heard: Heard) -> Owner:
    payload = payload_in(heard.content)
    if payload is None or payload.session not in owner.sessions:
        return owner
    ended = ended_epochs(payload, owner, heard.caller)
    return _with_released(owner, [epoch.id for epoch in ended], heard.at, _why(heard))


def _begun(owner: Owner, begun: Begun) -> Owner:
    """An owner whose session starts again lives again."""
    if begun.session not in owner.sessions:
        return owner
    epoch = Epoch(
        0,
        owner.id,
        begun.environment,
        begun.worker,
        begun.at,
        begun.boot_id,
        begun.anchor,
        None,
        "",
        None,
    )
    return owner._replace(epochs=(*owner.epochs, epoch))


def lines_of(entries: Iterable[Entry]) -> list[Event]:
    """The lines that entries will add to the journal, as far as they can be told beforehand.

    Their number is 0: they have none yet.
    """
    found = []
    for entry in entries:
        if isinstance(entry, spooled.Line):
            found.append(Event(0, **entry._asdict()))
        elif isinstance(entry, Heard):
            line = journal_line(payload_in(entry.content), entry.agent, entry.at)
            found.append(Event(0, **line, proof=""))
    return found
