"""Variables: names and values that may leave corral, in the order in which they are written.

What no format can carry is refused here. What one format cannot carry is refused there, always as
an `InvalidValueError` whose message and `resource` name the variable. Values are never quoted in a
message: they may be secrets.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.errors import InvalidValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

Variables: TypeAlias = "tuple[tuple[str, str], ...]"

# The mark of a worker belongs to processes. In a file it would mark whoever reads the file.
MARK = "CORRAL_OWNER"


def refused(name: str, why: str, remedy: str = "") -> InvalidValueError:
    """The error for a variable that cannot be written; it names the variable and the reason."""
    return InvalidValueError(f"variable {name}: {why}", remedy=remedy, resource=name)


def check_name(name: object) -> str:
    """The name if it is `[A-Za-z_][A-Za-z0-9_]*` and no mark of corral's, else an error."""
    if not isinstance(name, str) or not (name.isascii() and name.isidentifier()):
        raise InvalidValueError(
            f"{name!r} is no name for a variable",
            remedy="use letters, digits and underscores, not beginning with a digit",
            resource=name if isinstance(name, str) else None,
        )
    if name == MARK:
        raise refused(name, "the mark of a worker is never written to a file", "choose another")
    return name


def check_value(name: str, value: object) -> str:
    """The value if it is text that a process environment can hold, else an error."""
    if not isinstance(value, str):
        raise refused(name, f"its value is a {type(value).__name__}, not text", "give a string")
    if value.isascii():
        if "\0" in value:
            raise refused(name, "its value contains a NUL character, which ends a value")
        return value
    if "\0" in value:
        raise refused(name, "its value contains a NUL character, which ends a value")
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate: bytes that were no UTF-8 when they were read
        raise refused(name, "its value is not valid Unicode text") from None
    return value


def checked(variables: Mapping[str, str] | Iterable[tuple[str, str]]) -> Variables:
    """All variables in their order, each checked; a name that comes twice is an error."""
    pairs = variables.items() if isinstance(variables, Mapping) else variables
    seen: dict[str, str] = {}
    for name, value in pairs:
        known = check_name(name)
        if known in seen:
            raise refused(known, "it is given twice")
        seen[known] = check_value(known, value)
    return tuple(seen.items())
