"""What Apple's `container` prints, decoded: the form before its version 1.0, and the one since.

Before: `[{"status", "configuration": {"id", "labels"}}]`, networks with `config`. Since: `[{"id",
"configuration": {"id", "labels", "creationDate"}, "status": {"state"}}]`, networks alike. Whatever
has neither form is not understood, and never taken for an empty list.
"""

from __future__ import annotations

from corral.backends.engine.instants import instant
from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Foundation writes dates as seconds since 2001 where it is not told otherwise.
_REFERENCE_DATE = 978307200.0
_ROLE, _BUILT_IN = "com.apple.container.resource.role", "builtin"
_DEFAULT_NETWORK = "default"


class Thing(NamedTuple):
    """A container or network. `stamp`: its creation as it was written, `created` as unix time.

    `mounts`: it has directories or volumes of the machine.
    """

    id: str
    labels: Mapping[str, str]
    state: str
    stamp: str
    created: float | None
    mounts: bool = False

    @property
    def built_in(self) -> bool:
        """A network that every machine has by itself."""
        return self.id == _DEFAULT_NETWORK or self.labels.get(_ROLE) == _BUILT_IN


def things(text: str) -> tuple[Thing, ...]:
    """The containers or networks in a listing. Raises InvalidValueError for another form."""
    import json

    try:
        entries = json.loads(text)
    except ValueError as error:
        raise InvalidValueError("it is no JSON") from error
    if not isinstance(entries, list):
        raise InvalidValueError("it is no list")
    return tuple(_thing(entry) for entry in entries)


def _thing(entry: Any) -> Thing:
    if not isinstance(entry, dict):
        raise InvalidValueError("an entry is no object")
    configuration = entry.get("configuration", entry.get("config"))
    if not isinstance(configuration, dict):
        raise InvalidValueError("an entry has no configuration")
    identifier = entry.get("id") or configuration.get("id") or configuration.get("name")
    if not isinstance(identifier, str) or identifier.startswith("-"):
        raise InvalidValueError("an entry has no id")
    stamp, created = _date(configuration.get("creationDate"))
    return Thing(
        identifier,
        _labels(configuration.get("labels")),
        _state(entry),
        stamp,
        created,
        bool(configuration.get("mounts")),
    )


def _state(entry: dict[str, Any]) -> str:
    status = entry.get("status", entry.get("state"))
    if isinstance(status, dict):
        status = status.get("state", entry.get("state"))
    return status if isinstance(status, str) else "unknown"


def _labels(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise InvalidValueError("its labels are no texts by name")
    return value


def _date(value: Any) -> tuple[str, float | None]:
    if isinstance(value, bool) or value is None:
        return "", None
    if isinstance(value, int | float):
        return repr(value), _REFERENCE_DATE + value
    text = str(value)
    return text, instant(text)
