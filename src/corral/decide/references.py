"""Fill `${...}` in a value of `[vars]`; `$${` stands for a literal `${`."""

from __future__ import annotations

from corral.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def filled_in(key: str, text: str, known: Mapping[str, str]) -> str:
    """The text with every `${name}` replaced by `known[name]`.

    What is filled in is not looked at again. Raises ConfigurationError, naming `key`, for a name
    that is not known and for a `${` that is not closed.
    """
    parts: list[str] = []
    rest = text
    while (at := rest.find("${")) >= 0:
        if at and rest[at - 1] == "$":
            parts.append(rest[: at - 1] + "${")
            rest = rest[at + 2 :]
            continue
        end = rest.find("}", at)
        if end < 0:
            raise ConfigurationError(
                f"{key}: a ${{ is not closed",
                remedy="close it with }, or write $${ for a literal ${",
                resource=key,
            )
        name = rest[at + 2 : end]
        if name not in known:
            raise ConfigurationError(
                f"{key}: ${{{name}}} is not known here: expected one of {', '.join(known)}",
                remedy="correct it, run corral up if it is new, or write $${ for a literal ${",
                resource=key,
            )
        parts.append(rest[:at] + known[name])
        rest = rest[end + 1 :]
    return "".join(parts) + rest
