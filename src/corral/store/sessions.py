"""The start of a session, as rows: found or minted, aliased, and with an open epoch."""

from __future__ import annotations

from corral.decide.sessions import continued_epoch, owner_living_in, parent_of
from corral.model.tuples import NamedTuple
from corral.store import owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.process import ProcessIdentity


class Begun(NamedTuple):
    """What is known of a session that starts.

    `owner`: the id to mint where nobody has that session id yet. `worker`: its kind. `above`:
    (pid, start ticks) of the ancestors of who said so, nearest first. `at`: unix seconds. `joins`:
    a new session id in a process in which such a worker lives already is one more alias of it.
    `mark`: the owner that the nearest marked ancestor names; "" if none is marked.
    """

    session: str
    owner: str
    worker: str
    environment: str | None
    boot_id: str
    anchor: ProcessIdentity | None
    above: tuple[tuple[int, int], ...]
    at: float
    joins: bool = False
    mark: str = ""


def begin(conn: Connection, begun: Begun) -> tuple[str, int]:
    """The owner of a session that starts, and the id of its epoch; done again it changes nothing.

    A session id that is known is the same owner.
    """
    found = owners.by_session(conn, begun.session)
    others = owners.open_epochs(conn, begun.boot_id)
    if found is None:
        identifier = None
        if begun.joins:
            identifier = owner_living_in(begun.anchor, begun.worker, others)
        if identifier is None:
            identifier = begun.owner
            owners.mint(conn, identifier, implicit_of=None, parent=None, now=begun.at)
        owners.alias(conn, begun.session, identifier, begun.worker, begun.at)
        found = owners.find(conn, identifier)
    if found is None:
        raise AssertionError("an owner that was just minted is there")
    going_on = continued_epoch(found, begun.anchor, begun.environment, begun.boot_id)
    if going_on is not None:
        return found.id, going_on.id
    epoch = owners.open_epoch(
        conn,
        owner=found.id,
        environment=begun.environment,
        agent=begun.worker,
        boot_id=begun.boot_id,
        anchor=begun.anchor,
        now=begun.at,
    )
    if found.parent is None:
        parent = parent_of(found.id, begun.anchor, begun.above, others) or begun.mark
        if parent != found.id and owners.find(conn, parent) is not None:
            owners.reparent(conn, found.id, parent)
    return found.id, epoch.id
