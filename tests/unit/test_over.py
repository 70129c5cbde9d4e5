"""When an owner is over: every epoch proven, grace on the boot clock."""

from __future__ import annotations

import pytest

from corral.decide.over import (
    BootClock,
    forgettable,
    forgotten,
    grace_left,
    judge_epoch,
    judge_owner,
    newly_ended,
    was_released,
)
from corral.model.owner import End, Epoch, Life, Owner, OwnerState
from corral.model.process import Presence, ProcessIdentity

NOW = BootClock(1000.0, 5.0, "boot")
ALIVE, DEAD, FOGGY = (ProcessIdentity(pid, 1, "boot", 1) for pid in (10, 11, 12))
SEEN_LONG_AGO, JUST_SEEN = End(900.0, 5.0, "boot"), End(990.0, 5.0, "boot")


def presence(anchor: ProcessIdentity) -> tuple[Presence, str]:
    return {
        ALIVE: (Presence.ALIVE, "alive"),
        DEAD: (Presence.GONE, "gone"),
        FOGGY: (Presence.UNKNOWN, "unreadable"),
    }[anchor]


def epoch(
    anchor: ProcessIdentity | None = None,
    *,
    boot: str = "boot",
    released: float | None = None,
    end: End | None = None,
    environment: str | None = "env",
) -> Epoch:
    return Epoch(1, "o", environment, "x", 0.0, boot, anchor, released, "", end)


@pytest.mark.parametrize(
    ("given", "life"),
    [
        (epoch(ALIVE), Life.LIVE),
        (epoch(FOGGY), Life.LIVE),
        (epoch(None), Life.LIVE),
        (epoch(ALIVE, released=1.0), Life.OVER),
        (epoch(None, released=1.0), Life.OVER),
        (epoch(DEAD), Life.GRACE),
        (epoch(DEAD, end=JUST_SEEN), Life.GRACE),
        (epoch(DEAD, end=SEEN_LONG_AGO), Life.OVER),
        (epoch(None, boot="earlier"), Life.GRACE),
        (epoch(None, boot="earlier", end=SEEN_LONG_AGO), Life.OVER),
    ],
)
def test_an_epoch_ends_by_release_by_its_anchor_or_by_a_reboot(given: Epoch, life: Life) -> None:
    judged = judge_epoch(given, presence, NOW, 30.0)
    assert judged.life is life
    assert judged.reason


def test_without_grace_a_dead_anchor_counts_at_once() -> None:
    assert judge_epoch(epoch(DEAD), presence, NOW, 0.0).life is Life.OVER


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (None, 30.0),
        (JUST_SEEN, 20.0),
        (SEEN_LONG_AGO, 0.0),
        (SEEN_LONG_AGO._replace(boot_id="earlier"), 30.0),
        (SEEN_LONG_AGO._replace(suspended=0.0), 30.0),
    ],
)
def test_grace_runs_from_the_end_and_anew_after_a_wake_or_a_reboot(
    end: End | None, left: float
) -> None:
    assert grace_left(end, NOW, 30.0) == pytest.approx(left)


def owner(*epochs: Epoch, implicit: str | None = None) -> Owner:
    return Owner("o", implicit, None, 0.0, ("s",), epochs)


@pytest.mark.parametrize(
    ("given", "life"),
    [
        (owner(), Life.LIVE),
        (owner(implicit="env"), Life.LIVE),
        (owner(epoch(None, boot="earlier", end=SEEN_LONG_AGO), implicit="env"), Life.LIVE),
        (owner(epoch(DEAD, end=SEEN_LONG_AGO)), Life.OVER),
        (owner(epoch(DEAD, end=SEEN_LONG_AGO), epoch(ALIVE)), Life.LIVE),
        (owner(epoch(None, released=1.0), epoch(DEAD)), Life.GRACE),
        (owner(epoch(None, released=1.0), epoch(FOGGY, released=2.0)), Life.OVER),
    ],
)
def test_an_owner_is_over_only_when_every_epoch_is(given: Owner, life: Life) -> None:
    assert judge_owner(given, presence, NOW, 30.0).life is life


def test_an_owner_lives_in_the_environments_of_its_live_anchored_epochs() -> None:
    given = owner(
        epoch(ALIVE, environment="a"),
        epoch(None, environment="b"),
        epoch(DEAD, environment="c"),
        epoch(ALIVE, environment=None),
    )
    state = judge_owner(given, presence, NOW, 30.0)
    assert state.environments == {"a"}
    assert state.anchored


def test_the_first_sight_of_an_end_is_noted_once() -> None:
    fresh, standing, woken = (
        epoch(DEAD),
        epoch(DEAD, end=JUST_SEEN),
        epoch(DEAD, end=JUST_SEEN._replace(suspended=0.0)),
    )
    given = owner(fresh, standing, woken, epoch(ALIVE), epoch(DEAD, released=1.0))
    assert newly_ended(given, presence, NOW) == (fresh, woken)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (owner(), False),
        (owner(epoch(ALIVE)), False),
        (owner(epoch(DEAD, end=SEEN_LONG_AGO)), False),
        (owner(epoch(None, released=1.0)), True),
    ],
)
def test_a_release_is_told_from_a_crash(given: Owner, *, said: bool) -> None:
    assert was_released(judge_owner(given, presence, NOW, 30.0)) is said


_DAYS = 3 * 86400.0


@pytest.mark.parametrize(
    ("given", "long_ago"),
    [
        (epoch(released=0.0), True),
        (epoch(released=_DAYS - 60), False),
        (epoch(ALIVE), False),
        (epoch(DEAD, end=End(900.0, 5.0, "boot")), True),
        (epoch(DEAD, end=End(_DAYS - 60, 5.0, "boot")), False),
        (epoch(None, boot="earlier"), False),
        (epoch(DEAD, end=End(900.0, 5.0, "earlier")), False),
    ],
)
def test_an_owner_is_forgotten_a_day_after_its_known_end(given: Epoch, *, long_ago: bool) -> None:
    clock = BootClock(_DAYS, 5.0, "boot")
    state = judge_owner(Owner("o", None, None, 0.0, ("s",), (given,)), presence, clock, 30.0)
    assert forgotten(state, clock, _DAYS) is long_ago


def test_an_owner_is_not_forgotten_while_one_epoch_ended_lately() -> None:
    clock = BootClock(_DAYS, 5.0, "boot")
    epochs = (epoch(released=0.0), epoch(released=_DAYS - 60))
    state = judge_owner(Owner("o", None, None, 0.0, ("s",), epochs), presence, clock, 30.0)
    assert not forgotten(state, clock, _DAYS)


def _state(name: str = "o", life: Life = Life.OVER, *epochs: Epoch, **more: str) -> OwnerState:
    owner = Owner(name, more.get("implicit_of"), more.get("parent"), 0.0, ("s",), epochs)
    return OwnerState(owner, life, "", anchored=False)


LONG_AFTER = 31 * 86400.0


@pytest.mark.parametrize(
    ("states", "busy", "now", "expected"),
    [
        ([_state()], (), LONG_AFTER, ("o",)),
        ([_state()], ("other",), LONG_AFTER, ("o",)),
        ([_state()], ("o",), LONG_AFTER, ()),
        ([_state()], (), 29 * 86400.0, ()),
        ([_state("o", Life.LIVE)], (), LONG_AFTER, ()),
        ([_state("o", Life.GRACE)], (), LONG_AFTER, ()),
        ([_state(implicit_of="env")], (), LONG_AFTER, ()),
        ([_state(), _state("child", parent="o")], (), LONG_AFTER, ("child",)),
        ([_state("o", Life.OVER, epoch(released=2 * 86400.0))], (), LONG_AFTER, ()),
        ([_state("o", Life.OVER, epoch(released=3.0))], (), LONG_AFTER, ("o",)),
    ],
)
def test_an_owner_is_forgettable_when_nothing_asks_for_it_any_more(
    states: list[OwnerState], busy: tuple[str, ...], now: float, expected: tuple[str, ...]
) -> None:
    assert forgettable(states, busy, now) == expected
