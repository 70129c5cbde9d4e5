"""Names, ports, durations, approval, order, and when an environment is gone."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.approval import approved
from corral.decide.durations import format_age, local_time, parse_duration
from corral.decide.gone import Traces, judge_environment
from corral.decide.naming import CLUSTER, COMPOSE, POSTGRES, NameRule, claimed_name, slug
from corral.decide.order import stages
from corral.decide.ports import Pool, candidates, check_pool, check_port, parse_port
from corral.errors import InvalidValueError
from corral.model.environment import Existence
from corral.model.resource import Judgement, Kind, Sighting, Verdict

RULES = (POSTGRES, COMPOSE, CLUSTER)


@given(st.text(), st.text(), st.sampled_from(RULES))
def test_distinct_ids_get_distinct_names_within_the_limit(
    one: str, two: str, rule: NameRule
) -> None:
    names = [claimed_name("corral", text, text, rule) for text in (one, two)]
    assert (names[0] == names[1]) == (one == two)
    for name in names:
        assert len(name.encode()) <= rule.limit
        assert name.isascii()
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
        assert name[0].isalpha()


@pytest.mark.parametrize("hostile", ["../../etc", "a b\nc", "日本", "---", "X" * 300, "\ud800"])
def test_hostile_ids_become_safe_names(hostile: str) -> None:
    name = claimed_name("corral", hostile, hostile, COMPOSE)
    assert "/" not in name
    assert "\n" not in name
    assert len(name) <= 63


def test_a_name_starts_with_a_letter_where_the_place_wants_one() -> None:
    assert claimed_name("1st", "x", "x", POSTGRES).startswith("c_1st_x_")
    assert claimed_name("", "x", "x", POSTGRES)[0] == "c"
    assert claimed_name("", "", "x", COMPOSE).isalnum()


def test_a_namespace_without_room_for_the_digits_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="too long"):
        claimed_name("n" * 60, "x", "x", CLUSTER)


def test_a_slug_keeps_letters_and_digits() -> None:
    assert slug("Feature/My_Branch 2", "-") == "feature-my-branch-2"


@pytest.mark.parametrize("bad", [0, 65536, -1, True, "80", 8.0, None])
def test_what_is_no_port_is_refused(bad: object) -> None:
    with pytest.raises(InvalidValueError):
        check_port(bad)


@pytest.mark.parametrize("bad", ["", "abc", "8 0", "-1", "0", "65536", "²", "99999999999999"])
def test_text_that_is_no_port_is_refused(bad: str) -> None:
    with pytest.raises(InvalidValueError, match="port"):
        parse_port(bad)


def test_ports_at_both_ends_are_ports() -> None:
    assert [parse_port("1"), parse_port("65535")] == [1, 65535]


@pytest.mark.parametrize("bad", [Pool(2000, 1999), Pool(80, 90), Pool(1024, 70000)])
def test_an_empty_or_low_pool_is_refused(bad: Pool) -> None:
    with pytest.raises(InvalidValueError):
        check_pool(bad)


def test_a_pool_of_one_port_is_a_pool() -> None:
    pool = check_pool(Pool(22000, 22000))
    assert list(candidates(pool, "r", "w", "web")) == [22000]


@given(st.integers(1, 40), st.integers(1, 40), st.text(max_size=5))
def test_every_run_of_the_pool_is_offered_once(size: int, count: int, name: str) -> None:
    pool = Pool(22000, 22000 + size - 1)
    if count > size:
        with pytest.raises(InvalidValueError, match="does not fit"):
            list(candidates(pool, "r", "w", name, count=count))
        return
    offered = list(candidates(pool, "r", "w", name, count=count))
    assert sorted(offered) == list(range(22000, 22000 + size - count + 1))


def test_the_preference_is_the_same_in_every_process() -> None:
    assert next(candidates(Pool(22000, 31999), "shop", "feature", "web")) == 22733


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1w", 604800),
        ("1h30m", 5400),
        (" 1.5m ", 90),
        ("0", 0),
    ],
)
def test_spans_of_time_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "x", "5", "5 m", "-5m", "1.2.3s", ".s", "m", "5mm", "5y", "٣s"]
)
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    if text == "5":
        assert parse_duration(text) == 5
        return
    with pytest.raises(InvalidValueError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (59, "59s"), (60, "1m"), (3600, "1h"), (200000, "2d")]
)
def test_ages_are_shown_in_one_unit(seconds: float, text: str) -> None:
    assert format_age(seconds) == text


@pytest.mark.parametrize("seconds", [1e300, -1e300, float("inf"), float("nan"), 2.0**62])
def test_a_time_of_no_calendar_is_unknown(seconds: float) -> None:
    assert local_time(seconds) == "?"


def test_a_time_is_told_in_the_local_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    assert local_time(0.5) == "1970-01-01 02:00:00"
    monkeypatch.undo()
    time.tzset()


PRESENT, GONE, UNKNOWN = Existence.PRESENT, Existence.GONE, Existence.UNKNOWN


@pytest.mark.parametrize(
    ("traces", "live", "existence"),
    [
        (Traces(False, True, True), False, PRESENT),
        (Traces(True, False, True), False, PRESENT),
        (Traces(None, False, True), False, UNKNOWN),
        (Traces(False, None, True), False, UNKNOWN),
        (Traces(False, False, False), False, UNKNOWN),
        (Traces(False, False, None), False, UNKNOWN),
        (Traces(False, False, True, "/elsewhere"), False, PRESENT),
        (Traces(False, False, True), True, PRESENT),
        (Traces(False, False, True), False, GONE),
    ],
)
def test_an_environment_is_gone_by_four_proofs_together(
    traces: Traces, live: bool, existence: Existence
) -> None:
    judged, reason = judge_environment(traces, live_anchored=live)
    assert judged is existence
    assert reason


def _judgement(
    kind: Kind, identifier: str, *, ticks: int = 1, ancestors: tuple[tuple[int, int], ...] = ()
) -> Judgement:
    pairs: tuple[tuple[str, str | int], ...] = (("id", identifier),)
    if kind is Kind.PROCESS:
        pairs = (("pid", int(identifier)), ("start_ticks", ticks))
    sighting = Sighting(kind, identifier, "n", "b", "running", None, pairs, ancestors=ancestors)
    return Judgement(sighting, Verdict.REAP, "r", "c")


def test_approval_is_by_identity_not_by_name() -> None:
    shown = [_judgement(Kind.PROCESS, "5", ticks=1).sighting]
    recycled = _judgement(Kind.PROCESS, "5", ticks=2)
    assert approved([recycled], shown) == ()


def test_what_appeared_after_the_preview_is_not_approved() -> None:
    shown = [_judgement(Kind.CONTAINER, "a").sighting]
    fresh = [_judgement(Kind.CONTAINER, "a"), _judgement(Kind.CONTAINER, "b")]
    assert approved(fresh, shown) == (fresh[0],)


def test_what_an_approved_process_spawned_goes_with_it() -> None:
    shown = [_judgement(Kind.PROCESS, "5").sighting]
    child = _judgement(Kind.PROCESS, "6", ancestors=((5, 1), (1, 0)))
    stranger = _judgement(Kind.PROCESS, "7", ancestors=((5, 2),))
    assert approved([child, stranger], shown) == (child,)


def test_users_go_before_what_they_use() -> None:
    targets = [
        _judgement(k, "1") for k in (Kind.NETWORK, Kind.DIRECTORY, Kind.PROCESS, Kind.CONTAINER)
    ]
    assert [kind for kind, _ in stages(targets)] == [
        Kind.PROCESS,
        Kind.CONTAINER,
        Kind.NETWORK,
        Kind.DIRECTORY,
    ]
