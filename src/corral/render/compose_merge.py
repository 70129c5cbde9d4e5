"""Merging Compose files, for the keys that isolation depends on.

Mappings merge key by key and plain values are replaced. Lists are appended, except those whose
items have a key (an environment, networks, mounts by their target), which merge by that key.
`!reset` takes a value away and `!override` replaces it whole.
Source: the Compose specification, chapter Merge.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Tree: TypeAlias = dict[str, Any]

_PAIRS = frozenset({"environment", "labels"})
_NAMES = frozenset({"networks", "depends_on"})


class Tagged(NamedTuple):
    """A value with a tag of Compose's: "reset" or "override"."""

    tag: str
    value: Any


def merge(base: Tree, over: Tree) -> Tree:
    """Two files: `services`, `networks` and the like by name, services by their own rules."""
    merged = dict(base)
    for key, value in over.items():
        known = merged.get(key)
        if key == "services" and isinstance(value, dict) and isinstance(known, dict):
            merged[key] = _by_name(known, value)
        else:
            _put(merged, key, value)
    return merged


def _by_name(base: Tree, over: Tree) -> Tree:
    merged = dict(base)
    for name, value in over.items():
        known = merged.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = merge_service(known, value)
        else:
            _put(merged, name, value)
    return merged


def merge_service(base: Tree, over: Tree) -> Tree:
    """Two descriptions of one service, `over` on top."""
    merged = dict(base)
    for key, value in over.items():
        if key in _PAIRS | _NAMES and not isinstance(value, Tagged):
            form = pairs if key in _PAIRS else _named
            merged[key] = _deep(form(base.get(key)), form(value))
        elif key == "volumes" and isinstance(value, list):
            known = base.get(key)
            merged[key] = _mounts(known if isinstance(known, list) else [], value)
        else:
            _put(merged, key, value)
    return merged


def _put(merged: Tree, key: str, value: Any) -> None:
    """Set, merge or take away one key."""
    if isinstance(value, Tagged):
        if value.tag == "reset":
            merged.pop(key, None)
        else:
            merged[key] = value.value
        return
    known = merged.get(key)
    if isinstance(known, dict) and isinstance(value, dict):
        merged[key] = _deep(known, value)
    elif isinstance(known, list) and isinstance(value, list):
        there = {repr(item) for item in known}
        merged[key] = [*known, *(item for item in value if repr(item) not in there)]
    elif value is not None or key not in merged:
        merged[key] = untagged(value)


def _deep(base: Tree, over: Tree) -> Tree:
    merged = dict(base)
    for key, value in over.items():
        _put(merged, key, value)
    return merged


def pairs(value: Any) -> Tree:
    """`["A=1", "B"]` or a mapping as a mapping; a name without a value has None."""
    if isinstance(value, dict):
        return value
    found: Tree = {}
    for item in value if isinstance(value, list) else []:
        name, equals, text = str(item).partition("=")
        found[name] = text if equals else None
    return found


def _named(value: Any) -> Tree:
    """`["a", "b"]` or a mapping as a mapping."""
    if isinstance(value, dict):
        return value
    return {str(item): None for item in value} if isinstance(value, list) else {}


def _mounts(base: list[Any], over: list[Any]) -> list[Any]:
    """Mounts merge by the path in the container."""
    merged = {_target(mount): mount for mount in base}
    return list((merged | {_target(mount): mount for mount in over}).values())


def _target(mount: Any) -> str:
    if isinstance(mount, dict):
        return str(mount.get("target", ""))
    parts = str(mount).split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def untagged(tree: Any) -> Any:
    """The tree without tags, which are left where nothing was there to reset or replace."""
    if isinstance(tree, dict):
        return {
            str(key): untagged(value.value if isinstance(value, Tagged) else value)
            for key, value in tree.items()
            if not (isinstance(value, Tagged) and value.tag == "reset")
        }
    if isinstance(tree, list):
        return [untagged(item) for item in tree]
    return tree
