"""Which owner a session's start means, and whether a session id can mean anything."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.owner import Epoch, Owner
    from corral.model.process import ProcessIdentity

_LONGEST = 1024


def session_fault(session: str) -> str:
    """Why a session id can own nothing; "" if it can."""
    if not session.strip():
        return "is empty"
    if len(session) > _LONGEST:
        return f"is longer than {_LONGEST} characters"
    if "\0" in session:
        return "holds a NUL"
    try:
        session.encode()
    except UnicodeEncodeError:
        # Half a character, or bytes that are no text.
        return "is no text in Unicode"
    return ""


def owner_living_in(
    anchor: ProcessIdentity | None, worker: str, open_epochs: Iterable[Epoch]
) -> str | None:
    """The owner of the same kind of worker that lives in that process; None: nobody does.

    A new session id there, as after `/clear`, is one more alias of that owner. A worker of another
    kind, whose own process could not be told, is somebody else.
    """
    if anchor is None:
        return None
    for epoch in open_epochs:
        if epoch.anchor is not None and epoch.agent == worker and epoch.anchor.matches(anchor):
            return epoch.owner
    return None


def continued_epoch(
    owner: Owner, anchor: ProcessIdentity | None, environment: str | None, boot_id: str
) -> Epoch | None:
    """The open epoch that a start with this anchor, in this environment, merely goes on with."""
    for epoch in owner.epochs:
        if epoch.released_at is not None or epoch.boot_id != boot_id:
            continue
        if epoch.environment == environment and _same(epoch.anchor, anchor):
            return epoch
    return None


def _same(one: ProcessIdentity | None, other: ProcessIdentity | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.matches(other)


def parent_of(
    owner: str,
    anchor: ProcessIdentity | None,
    above: Iterable[tuple[int, int]],
    open_epochs: Iterable[Epoch],
) -> str | None:
    """The other owner whose anchor stands nearest above; its end never ends this one.

    `above`: (pid, start ticks) of the caller's ancestors, nearest first. `open_epochs`: of this
    boot. An owner that lives in the same process as this one is no parent of it.
    """
    own = None if anchor is None else (anchor.pid, anchor.start_ticks)
    owners: dict[tuple[int, int], str] = {}
    for epoch in open_epochs:
        if epoch.anchor is not None and epoch.owner != owner:
            owners.setdefault((epoch.anchor.pid, epoch.anchor.start_ticks), epoch.owner)
    return next((owners[key] for key in above if key in owners and key != own), None)
