"""Whether an owner is over: only when every epoch of it is proven over.

The burden of proof lies with "over". A release counts at once. A dead anchor and another boot
count once a grace has run on the boot clock; after a wake it runs anew from the next sight.
"""

from __future__ import annotations

from corral.model.owner import End, Life, OwnerState
from corral.model.process import Presence
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from corral.model.owner import Epoch, Owner
    from corral.model.process import ProcessIdentity


class BootClock(NamedTuple):
    """The boot clock now: seconds since boot, of which suspended, and the boot's id."""

    boottime: float
    suspended: float
    boot_id: str


class EpochLife(NamedTuple):
    """What is proven of one epoch; `ended` says that it is over but for its grace."""

    life: Life
    reason: str
    ended: bool


# A wake shows as growth of the suspended time; the two clocks are read one after the other.
_CLOCK_SLACK = 0.5
_DAY = 86400.0
# An agent is resumed days later, hardly ever months; nothing of the owner is left then anyway.
_REMEMBERED = 30 * _DAY


def judge_epoch(
    epoch: Epoch,
    presence: Callable[[ProcessIdentity], tuple[Presence, str]],
    clock: BootClock,
    grace: float,
) -> EpochLife:
    """What is proven of one epoch. `grace` in seconds."""
    if epoch.released_at is not None:
        return EpochLife(Life.OVER, f"released: {epoch.released_why or 'ended'}", ended=True)
    if epoch.boot_id != clock.boot_id:
        return _after_grace(epoch, "the machine was started again", clock, grace)
    if epoch.anchor is None:
        return EpochLife(Life.LIVE, "has no anchor and was not released", ended=False)
    state, why = presence(epoch.anchor)
    if state is not Presence.GONE:
        word = "lives" if state is Presence.ALIVE else f"cannot be judged ({why})"
        return EpochLife(Life.LIVE, f"its anchor, process {epoch.anchor.pid}, {word}", ended=False)
    return _after_grace(epoch, f"its anchor, process {epoch.anchor.pid}, is gone", clock, grace)


def _after_grace(epoch: Epoch, reason: str, clock: BootClock, grace: float) -> EpochLife:
    left = grace_left(epoch.end, clock, grace)
    if left > 0:
        return EpochLife(Life.GRACE, f"{reason}; {left:.0f} s of grace are left", ended=True)
    return EpochLife(Life.OVER, reason, ended=True)


def grace_left(end: End | None, clock: BootClock, grace: float) -> float:
    """Seconds of grace that are left; all of it when the end was never seen in this boot."""
    if grace <= 0:
        return 0.0
    if end is None or not end_stands(end, clock):
        return grace
    return max(0.0, grace - (clock.boottime - end.boottime))


def end_stands(end: End, clock: BootClock) -> bool:
    """Whether a recorded end still counts: same boot, and no suspension since."""
    return end.boot_id == clock.boot_id and clock.suspended - end.suspended < _CLOCK_SLACK


def judge_owner(
    owner: Owner,
    presence: Callable[[ProcessIdentity], tuple[Presence, str]],
    clock: BootClock,
    grace: float,
) -> OwnerState:
    """What is proven of an owner's life, with the reason.

    An owner without any epoch has never begun, so nothing proves that it ended: it lives. The
    worktree's implicit owner is a person; only the end of the environment ends what is theirs.
    `environments` are those of its live anchored epochs.
    """
    if owner.implicit_of is not None:
        return OwnerState(
            owner, Life.LIVE, "a person works here, and is never over by themselves", False
        )
    lives = [(epoch, judge_epoch(epoch, presence, clock, grace)) for epoch in owner.epochs]
    if not lives:
        return OwnerState(owner, Life.LIVE, "has no epoch yet", False)
    inside = frozenset(
        epoch.environment
        for epoch, life in lives
        if life.life is Life.LIVE and epoch.anchor is not None and epoch.environment is not None
    )
    anchored = any(life.life is Life.LIVE and epoch.anchor is not None for epoch, life in lives)
    for wanted in (Life.LIVE, Life.GRACE, Life.OVER):
        for _, life in lives:
            if life.life is wanted:
                return OwnerState(owner, wanted, life.reason, anchored, inside)
    raise AssertionError("every epoch has one of the three lives")  # pragma: no cover


def was_released(state: OwnerState) -> bool:
    """Whether the owner is over and somebody said so of its last epoch: it did not just crash."""
    last = max(state.owner.epochs, key=lambda epoch: epoch.id, default=None)
    return state.life is Life.OVER and last is not None and last.released_at is not None


def forgotten(state: OwnerState, clock: BootClock, now: float) -> bool:
    """Whether every epoch of an owner ended more than a day ago, so that nobody looks for it.

    `now` is unix time. An end whose time is not known is not long ago.
    """
    ages = [_ended_since(epoch, clock, now) for epoch in state.owner.epochs]
    return state.life is Life.OVER and all(age > _DAY for age in ages)


def _ended_since(epoch: Epoch, clock: BootClock, now: float) -> float:
    """Seconds for which the epoch is known to be over."""
    if epoch.released_at is not None:
        return now - epoch.released_at
    if epoch.end is None or epoch.end.boot_id != clock.boot_id:
        return 0.0
    return clock.boottime - epoch.end.boottime


def newly_ended(
    owner: Owner,
    presence: Callable[[ProcessIdentity], tuple[Presence, str]],
    clock: BootClock,
) -> tuple[Epoch, ...]:
    """Epochs that are seen to be over now and whose end has no standing record yet."""
    return tuple(
        epoch
        for epoch in owner.epochs
        if epoch.released_at is None
        and judge_epoch(epoch, presence, clock, 1.0).ended
        and (epoch.end is None or not end_stands(epoch.end, clock))
    )


def forgettable(states: Iterable[OwnerState], busy: Container[str], now: float) -> tuple[str, ...]:
    """The owners that nothing asks for any more: over, silent for 30 days, and with nothing left.

    `busy`: the owners that anything leads to. `now` in unix seconds. An implicit owner goes with
    its environment, and one that others were started inside after them.
    """
    known = tuple(states)
    parents = {state.owner.parent for state in known}
    return tuple(
        state.owner.id
        for state in known
        if state.life is Life.OVER
        and state.owner.implicit_of is None
        and state.owner.id not in parents
        and state.owner.id not in busy
        and now - _last_heard(state.owner) > _REMEMBERED
    )


def _last_heard(owner: Owner) -> float:
    opened = (epoch.opened_at for epoch in owner.epochs)
    released = (epoch.released_at or 0.0 for epoch in owner.epochs)
    return max([owner.created_at, *opened, *released])
