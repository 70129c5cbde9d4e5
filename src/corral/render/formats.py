"""Every output format under its name: one function from variables to text."""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.render import compose, direnv, dotenv, github, json_format, shell
from corral.render.header import comment
from corral.render.variables import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from corral.render.variables import Variables

GENERATOR = "corral"

# formats whose readers skip lines that begin with `#`
_COMMENTED: dict[str, Callable[[Variables], str]] = {
    "dotenv": dotenv.lines,
    "shell": shell.exports,
    "direnv": direnv.exports,
}
FORMATS = ("dotenv", "shell", "json", "docker-compose", "github", "direnv")


def check_format(name: object) -> str:
    """The name if it is one of `FORMATS`, else an InvalidValueError that lists them."""
    for known in FORMATS:
        if name == known:
            return known
    raise InvalidValueError(
        f"{name!r} is no output format", remedy=f"use one of {', '.join(FORMATS)}"
    )


def render_text(
    fmt: str,
    variables: Mapping[str, str] | Iterable[tuple[str, str]],
    *,
    title: str,
    header: bool = True,
    generator: str = GENERATOR,
    service: str = "app",
    random_delimiter: Callable[[], str] = github.random_delimiter,
) -> str:
    """The variables as text in one of `FORMATS`, read back unchanged by that format's readers.

    `variables`: a mapping or (name, value) pairs; their order is kept. `title` and `generator` fill
    the comment at the top, where the format has comments and `header` is true. `service` names the
    service that gets the variables in a Compose file. Raises InvalidValueError for an unknown
    format, a name that is none, and a value that the format cannot carry; it names the variable.
    """
    known = check_format(fmt)
    pairs = checked(variables)
    if known == "json":
        return json_format.document(pairs)
    if known == "github":
        return github.lines(pairs, random_delimiter)
    if known == "docker-compose":
        body = compose.fragment(pairs, service)
    else:
        body = _COMMENTED[known](pairs)
    return comment(title, generator) + body if header else body
