"""What an entry of the spool says. Pure: JSON text in, values out."""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.hook import Caller, Heard
from corral.model.tuples import NamedTuple
from corral.store import encoding
from corral.store.sessions import Begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_TEXTS = ("kind", "resource", "name", "trigger", "proof", "detail")


class Release(NamedTuple):
    """An epoch (None: every one) of an owner was released at that unix time."""

    owner: str
    epoch: int | None
    at: float
    why: str


class Line(NamedTuple):
    """A line for the journal: all of its columns but the id."""

    at: float
    action: str
    kind: str
    resource: str
    name: str
    trigger: str
    proof: str
    detail: str
    owner: str | None
    environment: str | None


if TYPE_CHECKING:
    Entry = Release | Line | Heard | Begun


class UnknownKindError(InvalidValueError):
    """A well-formed entry of a kind that this corral does not know: a newer one's."""


def encode(entry: Mapping[str, Any]) -> bytes:
    """The entry as JSON. Raises InvalidValueError for one that `decode` would not understand."""
    content = encoding.encode_object(dict(entry)).encode()
    decode(content)
    return content


def decode(content: bytes) -> Entry:
    """The entry that was encoded.

    Raises UnknownKindError for another kind, InvalidValueError for what is torn or wrong.
    """
    fields = encoding.parse_object(content)
    kind = fields.pop("entry", None)
    if not isinstance(kind, str):
        raise InvalidValueError("it does not say what kind of entry it is")
    if kind not in _KINDS:
        raise UnknownKindError(f"{kind!r} is no kind of entry that this corral knows")
    return _KINDS[kind](fields)


def decode_heard(content: bytes) -> Heard:
    """The call of a hook that was encoded; raises InvalidValueError for anything else."""
    found = decode(content)
    if not isinstance(found, Heard):
        raise InvalidValueError("it is no call of a hook")
    return found


def _release(fields: Mapping[str, Any]) -> Release:
    epoch = fields.get("epoch")
    owner = encoding.text(fields.get("owner"))
    if not owner:
        raise InvalidValueError("it names no owner")
    return Release(
        owner,
        None if epoch is None else encoding.integer(epoch),
        encoding.number(fields.get("at")),
        encoding.text(fields.get("why")),
    )


def _line(fields: Mapping[str, Any]) -> Line:
    kind, resource, name, trigger, proof, detail = (
        encoding.text(fields.get(column, "")) for column in _TEXTS
    )
    return Line(
        encoding.number(fields.get("at")),
        encoding.text(fields.get("action")),
        kind,
        resource,
        name,
        trigger,
        proof,
        detail,
        encoding.optional_text(fields.get("owner")),
        encoding.optional_text(fields.get("environment")),
    )


def _heard(fields: Mapping[str, Any]) -> Heard:
    caller = Caller(
        _chain(fields.get("above")),
        encoding.text(fields.get("boot_id")),
        encoding.integer(fields.get("pid_namespace")),
        encoding.integer(fields.get("agent_pid", 0)),
    )
    try:
        content = bytes.fromhex(encoding.text(fields.get("content")))
    except ValueError as error:
        raise InvalidValueError("its content is not in hexadecimal digits") from error
    return Heard(
        encoding.text(fields.get("agent")), encoding.number(fields.get("at")), content, caller
    )


def begun_entry(begun: Begun) -> dict[str, Any]:
    """The entry that says that a session started."""
    return {
        "entry": "begun",
        **begun._asdict(),
        "anchor": None if begun.anchor is None else encoding.process_pairs(begun.anchor),
    }


def _begun(fields: Mapping[str, Any]) -> Begun:
    anchor = fields.get("anchor")
    begun = Begun(
        session=encoding.text(fields.get("session")),
        owner=encoding.text(fields.get("owner")),
        worker=encoding.text(fields.get("worker")),
        environment=encoding.optional_text(fields.get("environment")),
        boot_id=encoding.text(fields.get("boot_id")),
        anchor=None if anchor is None else encoding.process_of(encoding.as_pairs(anchor)),
        above=_chain(fields.get("above")),
        at=encoding.number(fields.get("at")),
        joins=fields.get("joins") is True,
        mark=encoding.text(fields.get("mark", "")),
    )
    if not all((begun.session.strip(), begun.owner, begun.boot_id)):
        raise InvalidValueError("it does not say which session started where")
    return begun


def _chain(found: object) -> tuple[tuple[int, int], ...]:
    if not isinstance(found, list):
        raise InvalidValueError("it does not say who called")
    return tuple(_link(item) for item in found)


def _link(item: object) -> tuple[int, int]:
    if not isinstance(item, list) or len(item) != 2:  # noqa: PLR2004 (pid and start ticks)
        raise InvalidValueError("it does not say who called")
    return encoding.integer(item[0]), encoding.integer(item[1])


_KINDS: dict[str, Callable[[Mapping[str, Any]], Entry]] = {
    "release": _release,
    "event": _line,
    "hook": _heard,
    "begun": _begun,
}
