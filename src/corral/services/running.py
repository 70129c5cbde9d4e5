"""What runs under a name in an environment, as the records and the kernel together prove it."""

from __future__ import annotations

import json

from corral.errors import ForeignError, InvalidValueError
from corral.kernel import clock, identity
from corral.model.process import Presence
from corral.model.record import RecordState
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.store import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from sqlite3 import Connection
    from typing import Any

    from corral.model.record import Record

ROLES = frozenset({"service", "supervisor", "descendant"})


class Service(NamedTuple):
    """The records of one name, by what is proven of them.

    `starting`: intents whose creator lives. `dead`: what certainly names nothing any more.
    """

    name: str
    alive: tuple[Record, ...] = ()
    starting: tuple[Record, ...] = ()
    dead: tuple[Record, ...] = ()

    @property
    def main(self) -> Record | None:
        """The record that stands for the service: its own process, else what is left of it."""
        for role in ("service", "descendant", "supervisor"):
            for record in self.alive:
                if record.role == role:
                    return record
        return None

    @property
    def supervisor(self) -> Record | None:
        """The record of its supervisor, None in the foreground."""
        return next((r for r in self.alive if r.role == "supervisor"), None)

    @property
    def detail(self) -> dict[str, Any]:
        """What was written down of it at its start: argv, cwd, log, ports, handoff, host."""
        for record in (*self.alive, *self.starting):
            if record.role != "descendant":
                return details(record)
        return {}


def named(conn: Connection, environment: str, name: str) -> Service:
    """What is recorded under that name in the environment."""
    rows = records.of_environment(conn, environment)
    return _sorted(name, (r for r in rows if r.name == name))


def all_named(conn: Connection, environment: str) -> tuple[Service, ...]:
    """Everything that runs under a name in the environment, by name."""
    rows = [r for r in records.of_environment(conn, environment) if r.name]
    found = (_sorted(name, (r for r in rows if r.name == name)) for name in {r.name for r in rows})
    return tuple(sorted((s for s in found if s.alive), key=lambda s: s.name))


def _sorted(name: str, rows: Iterable[Record]) -> Service:
    groups: dict[str, list[Record]] = {"alive": [], "starting": [], "dead": []}
    for record in rows:
        if record.kind is Kind.PROCESS and record.role in ROLES:
            groups[_standing(record)].append(record)
    return Service(name, *(tuple(groups[key]) for key in ("alive", "starting", "dead")))


def _standing(record: Record) -> str:
    """What is proven of one record; what cannot be told counts as alive."""
    intent = record.state is RecordState.INTENT
    try:
        pinned = record.creator if intent else identity.decode_identity(record.identity)
    except InvalidValueError:
        return "alive"
    if pinned is None:
        return "alive"
    if identity.presence(pinned, boot_id=clock.boot_id())[0] is Presence.GONE:
        return "dead"
    return "starting" if intent else "alive"


def refuse_unknown(service: Service) -> None:
    """ForeignError when nobody can tell from here whether the service runs."""
    for record in service.alive:
        try:
            pinned = identity.decode_identity(record.identity)
        except InvalidValueError:
            # A row that is not understood; `status` shows it.
            continue
        presence, why = identity.presence(pinned, boot_id=clock.boot_id())
        if presence is Presence.UNKNOWN:
            raise ForeignError(
                f"nobody can tell from here whether {service.name} runs: {why}",
                remedy="ask where it was started, or use another name",
                resource=record.id,
            )


def is_gone(record: Record) -> bool:
    """Whether the record certainly names nothing any more."""
    return _standing(record) == "dead"


def details(record: Record) -> dict[str, Any]:
    """The record's detail, less what is not understood of it."""
    try:
        found = json.loads(record.detail)
    except ValueError:
        return {}
    known = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in known if key not in _SOUND or _SOUND[key](value)}


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_SOUND: dict[str, Callable[[Any], bool]] = {
    "argv": lambda words: isinstance(words, list) and all(map(_is_text, words)),
    "host": _is_text,
    "log": lambda path: path is None or isinstance(path, str),
    "of": _is_text,
    "place": _is_text,
    "ports": lambda found: (
        isinstance(found, dict) and all(isinstance(number, int) for number in found.values())
    ),
}
