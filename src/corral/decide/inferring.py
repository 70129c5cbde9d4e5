"""Which ports a project seems to need, from files that it has anyway. Text in, guesses out.

A guess claims too little rather than too much: the port of a server that a project only connects
to (its database, its mail server) is not its own, and giving it a new number would cut it off.
"""

from __future__ import annotations

import re

from corral.decide.ports import HIGHEST, LOWEST
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Guess(NamedTuple):
    """A port that a file speaks of: its name, its usual number if known, and where it stands."""

    name: str
    preferred: int | None
    source: str


# `-p 3000`, `--port=3000`, `--bind 0.0.0.0:3000`, `PORT=3000`, `${PORT:-3000}`
_NUMBER = re.compile(
    r"(?:(?<!\S)-p[ =]?|--port[ =]|--(?:bind|listen|addr|address)[ =]\S*?:"
    r"|(?<!\S)-b[ =]?\S*?:|\bPORT=|\bPORT:-|\brunserver(?:\s+\S+:|\s+))(\d{1,5})\b"
)
_PORT_VARIABLE = re.compile(r"\$(?:PORT\b|\{PORT\b)")
_PROCESS = re.compile(r"^([A-Za-z][A-Za-z0-9_-]*):\s*(\S.*)$")
_SETTING = re.compile(
    r"^\s*(?:export\s+)?((?:[A-Za-z][A-Za-z0-9_]*_)?PORT)\s*="
    r"\s*(?:[\"']?(\d{1,5})\b|[\"']{0,2}\s*(?:#|$))"
)

# The numbers that development servers take when none is given, by the word that starts them.
_SERVERS = {
    "vite": 5173,
    "next": 3000,
    "nuxt": 3000,
    "nuxi": 3000,
    "remix": 3000,
    "react-scripts": 3000,
    "astro": 4321,
    "ng": 4200,
    "gatsby": 8000,
    "vue-cli-service": 8080,
    "webpack-dev-server": 8080,
}
_NO_SERVERS = re.compile(
    r"\b(?:vite|next|nuxt|nuxi|remix|astro|ng|gatsby|react-scripts)\s+(?:build|test|lint)\b"
)
_SCRIPTS = ("dev", "start", "serve", "preview")
_OF_A_PART = re.compile(r"^(?:dev|start|serve):([A-Za-z][A-Za-z0-9_-]*)$")

# What a project connects to, by the word before _PORT, or by the number.
_OTHERS = frozenset(
    {"amqp", "cache", "database", "db", "elastic", "elasticsearch", "email", "imap", "kafka"}
    | {"ldap", "mail", "maria", "mariadb", "memcached", "mongo", "mongodb", "mysql", "nats", "pg"}
    | {"pop", "postgres", "postgresql", "rabbitmq", "redis", "smtp", "ssh"}
)
_OTHERS_NUMBERS = frozenset(
    {22, 25, 389, 465, 587, 1433, 1521, 2181, 3306, 4222, 5432, 5672, 6379, 9042, 9092, 9200}
    | {11211, 27017}
)


def _number(text: str | None) -> int | None:
    value = int(text) if text else 0
    return value if LOWEST <= value <= HIGHEST else None


def from_procfile(text: str) -> tuple[Guess, ...]:
    """One port for `web`, and for each process whose command takes a port."""
    found = []
    for line in text.splitlines():
        match = _PROCESS.match(line)
        if match is None:
            continue
        name, command = match.groups()
        number = _NUMBER.search(command)
        if number or _PORT_VARIABLE.search(command) or name == "web":
            found.append(Guess(name, _number(number[1]) if number else None, "Procfile"))
    return tuple(found)


def from_package_json(text: str) -> tuple[Guess, ...]:
    """`web` for the script that serves, and one port for each `dev:NAME` that names its number.

    Raises ValueError for what is no JSON object.
    """
    import json

    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - the text is wrong, not the caller
    scripts = document.get("scripts")
    if not isinstance(scripts, dict):
        return ()
    commands = {k: v for k, v in scripts.items() if isinstance(k, str) and isinstance(v, str)}
    return (*_serving(commands), *_parts(commands))


def _serving(commands: dict[str, str]) -> Iterator[Guess]:
    for script in _SCRIPTS:
        command = commands.get(script, "")
        number = _NUMBER.search(command)
        usual = next((_SERVERS[word] for word in command.split() if word in _SERVERS), None)
        if _NO_SERVERS.search(command):
            usual = None
        if number or usual or _PORT_VARIABLE.search(command):
            yield Guess("web", _number(number[1]) if number else usual, f"package.json ({script})")
            return


def _parts(commands: dict[str, str]) -> Iterator[Guess]:
    for script, command in commands.items():
        part = _OF_A_PART.match(script)
        number = _NUMBER.search(command)
        if part and number:
            yield Guess(part[1], _number(number[1]), f"package.json ({script})")


def from_env_example(text: str, file: str = ".env.example") -> tuple[Guess, ...]:
    """One port for each `NAME_PORT=` of the project's own; a bare `PORT` is `web`."""
    found = []
    for line in text.splitlines():
        match = _SETTING.match(line)
        if match is None:
            continue
        name = match[1].lower().removesuffix("port").rstrip("_") or "web"
        number = _number(match[2])
        if number in _OTHERS_NUMBERS or _OTHERS & set(name.split("_")):
            continue
        found.append(Guess(name, number, f"{file} ({match[1]})"))
    return tuple(found)


def merged(guesses: Iterable[Guess]) -> tuple[Guess, ...]:
    """One guess for each name, variable and number; what was said first stays.

    A later guess of the same name only adds a number that was missing.
    """
    found: dict[str, Guess] = {}
    for guess in guesses:
        key = guess.name.lower().replace("-", "_")
        taken = {g.preferred for k, g in found.items() if k != key}
        if guess.preferred is not None and guess.preferred in taken:
            continue
        known = found.setdefault(key, guess)
        if known.preferred is None and guess.preferred is not None:
            found[key] = known._replace(preferred=guess.preferred)
    return tuple(found.values())
