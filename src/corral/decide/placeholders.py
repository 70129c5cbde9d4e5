"""`{port}`, `{host}` and `{fd}` in the words of a command."""

from __future__ import annotations

from corral.model.tuples import NamedTuple


class Handed(NamedTuple):
    """A port that a command is given: its number, and the descriptor of its socket (or None)."""

    name: str
    number: int
    descriptor: int | None = None


def fill(argv: tuple[str, ...], host: str, ports: tuple[Handed, ...]) -> tuple[str, ...]:
    """The words with the placeholders replaced; without any port they stay as they are.

    `{port}` and `{fd}` mean the first port, `{port.NAME}` and `{fd.NAME}` the one of that name.
    Braces with anything else in them are the command's own, as are `${port}` and `{{port}}`.
    """
    if not ports:
        return argv
    values = {"{host}": host, **_values(ports[0], "")}
    for port in ports:
        values |= _values(port, f".{port.name}")
    return tuple(_replaced(word, values) for word in argv)


def _values(port: Handed, suffix: str) -> dict[str, str]:
    values = {f"{{port{suffix}}}": str(port.number)}
    if port.descriptor is not None:
        values[f"{{fd{suffix}}}"] = str(port.descriptor)
    return values


def unfilled(argv: tuple[str, ...]) -> str:
    """The first placeholder of a port that stands in the words, "" if there is none.

    A word with blanks is a program's text, in which braces mean something else.
    """
    for word in argv:
        if word.split() != [word]:
            continue
        for begin in ("{port", "{fd"):
            at = word.find(begin)
            while at >= 0:
                name, brace, _ = word[at + 1 :].partition("}")
                known = name in {"port", "fd"} or name.startswith(("port.", "fd."))
                if brace and known and not _is_the_commands_own(word, at):
                    return word[at : at + len(name) + 2]
                at = word.find(begin, at + 1)
    return ""


def _replaced(word: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        at = word.find(placeholder)
        while at >= 0:
            if _is_the_commands_own(word, at):
                at = word.find(placeholder, at + 1)
                continue
            word = word[:at] + value + word[at + len(placeholder) :]
            at = word.find(placeholder, at + len(value))
    return word


def _is_the_commands_own(word: str, at: int) -> bool:
    """Whether the brace is a shell's `${port}` or a template's `{{port}}`."""
    return at > 0 and word[at - 1] in "${"
