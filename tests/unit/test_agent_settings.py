"""corral's hooks in an agent's settings: what install puts in, uninstall takes out."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.agent_settings import EVENTS, Form, entry, with_hooks, without_hooks
from corral.decide.receipt import Receipt, decode, encode
from corral.errors import InvalidValueError

CLAUDE, CODEX = Form("claude", in_words=True), Form("codex", in_words=False)
FORMS = st.sampled_from([CLAUDE, CODEX])
PROGRAM = "/opt/my tools/bin/corral-hook"

WORDS = st.text(max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=5,
)
HOOKS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["corral-hook other", "lint", "'"])},
    optional={"args": st.lists(WORDS, max_size=2), "timeout": st.integers(1, 9)},
)
GROUPS = st.fixed_dictionaries(
    {"hooks": st.lists(HOOKS | VALUES, max_size=2)}, optional={"matcher": WORDS}
)
HOOKED = st.dictionaries(
    st.sampled_from([*EVENTS, "Stop"]), st.lists(GROUPS | VALUES, max_size=3), max_size=3
)
SETTINGS = st.builds(
    lambda head, hooks, tail: {**head, **hooks, **tail},
    st.dictionaries(WORDS, VALUES, max_size=2),
    st.just({}) | st.builds(lambda hooks: {"hooks": hooks}, HOOKED),
    st.dictionaries(WORDS, VALUES, max_size=2),
)
LAYOUTS = st.sampled_from([
    {"indent": None}, {"indent": None, "separators": (",", ":")}, {"indent": 2}, {"indent": "\t"},
])  # fmt: skip


def _is_ours(hook: Any, form: Form) -> bool:
    return hook in [entry(form, PROGRAM, seconds) for seconds in EVENTS.values()]


@given(SETTINGS, LAYOUTS, FORMS)
def test_uninstall_undoes_install_to_the_byte(
    settings: dict[str, Any], layout: dict[str, Any], form: Form
) -> None:
    text = json.dumps(settings, **layout) + "\n"
    done = with_hooks(text, form, PROGRAM)
    assert done.by_hand == ()
    assert without_hooks(done.text, form, done.empty).text == text
    assert with_hooks(done.text, form, PROGRAM).text == done.text, "the second time does nothing"


@given(SETTINGS, LAYOUTS, FORMS)
def test_install_adds_one_group_to_each_event_and_touches_nothing_else(
    settings: dict[str, Any], layout: dict[str, Any], form: Form
) -> None:
    expected = deepcopy(settings)
    for event, seconds in EVENTS.items():
        group = {"hooks": [entry(form, PROGRAM, seconds)]}
        expected.setdefault("hooks", {}).setdefault(event, []).append(group)
    done = json.loads(with_hooks(json.dumps(settings, **layout), form, PROGRAM).text)
    assert done == expected
    assert list(done) == list(expected)


@given(SETTINGS, FORMS, st.booleans(), st.booleans())
def test_an_entry_that_was_moved_among_others_is_taken_out_alone(
    settings: dict[str, Any], form: Form, first: bool, both: bool
) -> None:
    done = json.loads(with_hooks(json.dumps(settings), form, PROGRAM).text)
    groups = done["hooks"]["SessionStart"]
    (ours,) = groups.pop()["hooks"]
    other = {"type": "command", "command": "mine"}
    mine: dict[str, Any] = {
        "matcher": "startup",
        "hooks": [ours, other] if first else [other, ours],
    }
    groups.insert(0, mine)
    if both:
        mine["hooks"].append(ours)
    left = json.loads(without_hooks(json.dumps(done), form, {}).text)
    assert left["hooks"]["SessionStart"][0] == {"matcher": "startup", "hooks": [other]}
    assert left["hooks"]["SessionStart"][1:] == groups[1:]


@pytest.mark.parametrize("form", [CLAUDE, CODEX])
def test_without_a_receipt_what_only_held_the_entries_goes_with_them(form: Form) -> None:
    for before in ("{}", '{"hooks": {}}', '{"hooks": {"SessionEnd": []}}'):
        done = with_hooks(before, form, PROGRAM).text
        assert json.loads(without_hooks(done, form, {}).text) == {}


def test_an_entry_that_the_user_tuned_keeps_its_place_and_is_brought_up_to_date() -> None:
    tuned = {**entry(CLAUDE, "/old/corral-hook", 30), "timeout": 99}
    text = json.dumps({"hooks": {"SessionStart": [{"matcher": "x", "hooks": [1, tuned]}]}})
    done = json.loads(with_hooks(text, CLAUDE, PROGRAM).text)
    assert done["hooks"]["SessionStart"] == [
        {"matcher": "x", "hooks": [1, {**tuned, "command": PROGRAM}]}
    ]
    assert done["hooks"]["SessionEnd"] == [{"hooks": [entry(CLAUDE, PROGRAM, 3)]}]


@pytest.mark.parametrize(("form", "other"), [(CLAUDE, CODEX), (CODEX, CLAUDE)])
def test_an_entry_written_by_hand_in_another_form_is_not_doubled_and_not_taken_out(
    form: Form, other: Form
) -> None:
    by_hand = entry(other._replace(agent=form.agent), "corral-hook", 5)
    text = json.dumps({"hooks": {event: [{"hooks": [by_hand]}] for event in EVENTS}})
    for done in (with_hooks(text, form, PROGRAM), without_hooks(text, form, {})):
        assert done.text == text
        assert done.by_hand == tuple(EVENTS)


@pytest.mark.parametrize(
    "hook",
    [
        "corral-hook claude",
        {"type": "prompt", "command": PROGRAM, "args": ["claude"]},
        {"type": "command", "command": 5, "args": ["claude"]},
        {"type": "command", "command": "/x/my-corral-hook", "args": ["claude"]},
        {"type": "command", "command": PROGRAM, "args": ["codex"]},
        {"type": "command", "command": PROGRAM, "args": ["claude", "more"]},
        {"type": "command", "command": "corral-hook claude && mine"},
        {"type": "command", "command": "corral-hook 'claude"},
    ],
)
def test_nothing_else_counts_as_an_entry_of_corral(hook: object) -> None:
    text = json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}, {"hooks": 5}, 7]}})
    left = without_hooks(text, CLAUDE, {})
    assert left.text == text
    assert left.by_hand == ()
    assert len(json.loads(with_hooks(text, CLAUDE, PROGRAM).text)["hooks"]["SessionStart"]) == 4


@pytest.mark.parametrize(
    "text", ['{"hooks": []}', '{"hooks": null}', '{"hooks": {"SessionEnd": {}}}', "{", "[]"]
)
def test_settings_of_no_such_form_are_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        with_hooks(text, CLAUDE, PROGRAM)
    with pytest.raises(InvalidValueError):
        without_hooks(text, CLAUDE, {})


def test_a_receipt_is_read_back() -> None:
    receipt = Receipt("ab", settings=True, directories=(".", "skills"), empty={"hooks": " \n"})
    assert decode(encode(receipt)) == receipt


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"schema": "other/1"}',
        encode(Receipt())[:-4],
        encode(Receipt()).replace(b"false", b"0"),
        encode(Receipt(empty={"hooks": '"x": 1'})),
        encode(Receipt()).replace(b'"empty": {}', b'"empty": []'),
    ],
)
def test_what_is_no_receipt_in_every_field_is_none(content: bytes) -> None:
    assert decode(content) is None


def test_a_receipt_names_no_directory_that_corral_does_not_make() -> None:
    found = decode(encode(Receipt(directories=("..", "skills", "/"))))
    assert found is not None
    assert found.directories == ("skills",)
