"""corral's entries among the hooks in an agent's settings: put in, and taken out again.

    {"hooks": {"SessionStart": [{"hooks": [ENTRY, ...]}, ...], ...}}

An entry is corral's when it is a command of the form that corral writes: a program called
`corral-hook` with the agent's name as its one argument. Wherever the user moves it, it is found.
"""

from __future__ import annotations

import shlex

from corral.decide import json_text
from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

PROGRAM = "corral-hook"
# Starting provisions an environment, which may ask git. At an end the hook only writes down that
# it was called; the agents allow less than this, and none allows more.
EVENTS = {"SessionStart": 30, "SessionEnd": 3}
# Paths of containers. No group is ever remembered: corral makes each of its own.
_ROOT, _GROUP = "", "-"


class Form(NamedTuple):
    """How one agent's settings name a hook's command.

    `in_words`: program and arguments apart (no shell is used); else one line for a shell.
    """

    agent: str
    in_words: bool


class Edit(NamedTuple):
    """A settings text with corral's entries in it.

    `empty`: containers that were there before without anything in them, by their path (`hooks`,
    `hooks/SessionStart`, "" for all), with the blanks between their brackets. `by_hand`: events
    whose entry somebody wrote in another form.
    """

    text: str
    empty: Mapping[str, str]
    by_hand: tuple[str, ...]


class _Place(NamedTuple):
    """Where an entry stands: the containers around it, innermost first, each with its index.

    The containers are the group's hooks, the event's groups, the events, and the settings.
    """

    way: tuple[tuple[int, int], ...]
    entry: json_text.Part


def entry(form: Form, program: str, seconds: int) -> dict[str, Any]:
    """One hook, as the agent documents it."""
    call: dict[str, Any] = {"command": program, "args": [form.agent]}
    if not form.in_words:
        call = {"command": f"{shlex.quote(program)} {form.agent}"}
    return {"type": "command", **call, "timeout": seconds}


def with_hooks(text: str, form: Form, program: str) -> Edit:
    """The settings with an entry for every event, each in a group of its own.

    An entry that is there keeps its place and its other keys; only its command is brought up to
    date. Raises InvalidValueError for settings that have no such form.
    """
    settings = json_text.parse(text)
    _check(settings)
    blanks: dict[str, str] = {}
    by_hand = []
    for event, seconds in EVENTS.items():
        new = entry(form, program, seconds)
        places = _places(text, form, event)
        if places:
            text = _up_to_date(text, form, event, new["command"])
        elif _is_by_hand(settings, form, event):
            by_hand.append(event)
        else:
            text = _added(text, event, {"hooks": [new]}, blanks)
    return Edit(text, blanks, tuple(by_hand))


def without_hooks(text: str, form: Form, empty: Mapping[str, str]) -> Edit:
    """The settings without corral's entries, and without what only held them.

    `empty`: as `with_hooks` gave it; these containers stay. Raises InvalidValueError for a text
    that is no JSON object.
    """
    settings = json_text.parse(text)
    _check(settings)
    for event in EVENTS:
        while places := _places(text, form, event):
            text = _taken_out(text, places[0], (_GROUP, f"hooks/{event}", "hooks", _ROOT), empty)
    return Edit(text, empty, tuple(e for e in EVENTS if _is_by_hand(settings, form, e)))


def _check(settings: Mapping[str, Any]) -> None:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise InvalidValueError('has "hooks" that is no object')
    for event in EVENTS:
        if not isinstance(hooks.get(event, []), list):
            raise InvalidValueError(f'has "hooks" in which {event} is no array')


def _is_written_by_corral(value: Any, form: Form) -> bool:
    if not isinstance(value, dict) or value.get("type") != "command":
        return False
    command = value.get("command")
    if not isinstance(command, str):
        return False
    if form.in_words:
        return value.get("args") == [form.agent] and _is_program(command)
    return "args" not in value and _calls(command, form.agent)


def _is_by_hand(settings: Mapping[str, Any], form: Form, event: str) -> bool:
    """Whether an event has an entry that calls corral in a form that corral does not write."""
    other = form._replace(in_words=not form.in_words)
    return any(
        _is_written_by_corral(hook, other)
        for group in settings.get("hooks", {}).get(event, [])
        for hook in _hooks_of(group)
    )


def _hooks_of(group: Any) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_program(path: str) -> bool:
    return path.rsplit("/", 1)[-1] == PROGRAM


def _calls(line: str, agent: str) -> bool:
    try:
        words = shlex.split(line)
    except ValueError:
        # A quote without its other half: some shell's own spelling.
        return False
    return len(words) == 2 and _is_program(words[0]) and words[1] == agent  # noqa: PLR2004


def _places(text: str, form: Form, event: str) -> list[_Place]:
    """Where corral's entries of an event stand, in order."""
    found = []
    for outer, hooks in _named(text, json_text.root(text), "hooks"):
        for middle, groups in _named(text, hooks.value, event):
            for number, group in enumerate(json_text.parts(text, groups.value)):
                for start, index, part in _entries(text, group, form):
                    way = (
                        (start, index),
                        (groups.value, number),
                        (hooks.value, middle),
                        (json_text.root(text), outer),
                    )
                    found.append(_Place(way, part))
    return found


def _named(text: str, start: int, key: str) -> list[tuple[int, json_text.Part]]:
    """The member of that name with its index, or nothing."""
    return [(n, part) for n, part in enumerate(json_text.parts(text, start)) if part.key == key]


def _entries(
    text: str, group: json_text.Part, form: Form
) -> Iterator[tuple[int, int, json_text.Part]]:
    """A group's entries of corral: where its array begins, the index in it, and the entry."""
    if text[group.value] != "{":
        return
    for _, listed in _named(text, group.value, "hooks"):
        hooks = json_text.parts(text, listed.value) if text[listed.value] == "[" else []
        for index, part in enumerate(hooks):
            if _is_written_by_corral(json_text.value(text, part), form):
                yield listed.value, index, part


def _up_to_date(text: str, form: Form, event: str, command: str) -> str:
    for number in range(len(_places(text, form, event))):
        place = _places(text, form, event)[number]
        for _, part in _named(text, place.entry.value, "command"):
            if json_text.value(text, part) != command:
                text = json_text.replace(text, part, command)
    return text


def _added(text: str, event: str, group: dict[str, Any], blanks: dict[str, str]) -> str:
    start = json_text.root(text)
    _note_empty(text, start, _ROOT, blanks)
    hooks = _named(text, start, "hooks")
    if not hooks:
        return json_text.add(text, start, {event: [group]}, "hooks")
    start = hooks[0][1].value
    _note_empty(text, start, "hooks", blanks)
    groups = _named(text, start, event)
    if not groups:
        return json_text.add(text, start, [group], event)
    start = groups[0][1].value
    _note_empty(text, start, f"hooks/{event}", blanks)
    return json_text.add(text, start, group)


def _note_empty(text: str, start: int, path: str, blanks: dict[str, str]) -> None:
    if not json_text.parts(text, start):
        blanks.setdefault(path, json_text.inner_blanks(text, start))


def _taken_out(text: str, place: _Place, paths: tuple[str, ...], empty: Mapping[str, str]) -> str:
    """Take one entry out, then whatever has nothing else in it, from the inside outwards."""
    for (container, index), path in zip(place.way, paths, strict=True):
        if len(json_text.parts(text, container)) > 1:
            return json_text.remove(text, container, index)
        if path in empty:
            return json_text.empty(text, container, empty[path])
    return json_text.empty(text, place.way[-1][0], "")
