"""The real readers of what corral writes: each takes text and yields what the reader understood."""

from __future__ import annotations

import io
import json
import os
import subprocess
from typing import TYPE_CHECKING

import dotenv

from support.engines import find_program, require_engine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_BARE = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
_HOSTILE = {"HOME": "/expanded", "A": "expanded", "x": "expanded"}  # so that expansion shows


class ReaderError(Exception):
    """The reader refused the text; the message is the reader's own."""


def need(program: str, engine: str) -> str:
    """The program's path; the test is skipped (or fails, where required) without it."""
    path = find_program(program)
    if path is None:
        require_engine(engine)
        raise AssertionError(f"{engine} is there, but {program} is not")
    return path


def python_dotenv(text: str, *, interpolate: bool = True) -> dict[str, str | None]:
    """What python-dotenv reads, from a stream with universal newlines as from a file."""
    stream = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    return dict(dotenv.dotenv_values(stream=stream, interpolate=interpolate))


def sourced(shell: Sequence[str], path: Path, *, export_all: bool = False) -> dict[str, str]:
    """The environment of a program started by `shell` after it sourced the file."""
    allexport = "set -a; " if export_all else ""
    done = subprocess.run(
        [*shell, "-c", f'{allexport}. "$1" && exec "$2" -0', "sh", path, find_program("env") or ""],
        env=_BARE | _HOSTILE,
        capture_output=True,
        check=False,
    )
    if done.returncode or done.stderr:
        raise ReaderError(done.stderr.decode())
    pairs = done.stdout.decode().split("\0")[:-1]
    return dict(pair.split("=", 1) for pair in pairs)


def compose_config(directory: Path, *files: str, profiles: Sequence[str] = ()) -> dict[str, object]:
    """The merged project that Compose makes of the files (none: what it finds by itself)."""
    program = need("docker-compose", "compose")
    named = [word for file in files for word in ("-f", file)]
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    done = subprocess.run(
        [program, *named, *chosen, "config", "--format", "json"],
        cwd=directory,
        env=_BARE | _HOSTILE,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if not done.stdout.startswith("{"):
        raise ReaderError(done.stderr)
    config = json.loads(done.stdout)
    assert isinstance(config, dict)
    return config


def compose_environment(
    directory: Path, document: str, *files: str, service: str = "app"
) -> dict[str, str]:
    """The environment that Compose gives a service of the file; `config` doubles each `$`."""
    (directory / "compose.yaml").write_text(document, encoding="utf-8")
    config = compose_config(directory, *files)
    services = config["services"]
    assert isinstance(services, dict)
    environment = services[service]["environment"]
    return {name: value.replace("$$", "$") for name, value in environment.items()}


def compose_dotenv(directory: Path, text: str, names: Sequence[str]) -> dict[str, str]:
    """What Compose reads from the project's `.env`, seen through `${NAME}` in its file."""
    (directory / ".env").write_bytes(text.encode())
    wanted = "".join(f"      {name}: ${{{name}}}\n" for name in names)
    return compose_environment(
        directory, f"services:\n  app:\n    image: none\n    environment:\n{wanted}"
    )


def compose_env_file(directory: Path, text: str) -> dict[str, str]:
    """What Compose reads from a service's `env_file`."""
    (directory / "some.env").write_bytes(text.encode())
    return compose_environment(
        directory, "services:\n  app:\n    image: none\n    env_file: some.env\n"
    )


def github_runner(text: str) -> dict[str, str]:
    """What a runner on Linux makes of the file named by GITHUB_ENV, by its documented rules.

    Lines end at a line feed only; `NAME<<WORD` comes before `NAME=value` if `<<` stands first;
    the value ends before the line that is exactly WORD; empty lines are skipped, others refused.
    """
    found: dict[str, str] = {}
    lines = text.split("\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (equals < 0 or heredoc < equals):
            name, word = line.split("<<", 1)
            try:
                end = lines.index(word, position)
            except ValueError:
                raise ReaderError(f"matching delimiter not found {word!r}") from None
            found[name] = "\n".join(lines[position:end])
            position = end + 1
        elif equals > 0:
            name, found[name] = line.split("=", 1)
        else:
            raise ReaderError(f"invalid format {line!r}")
    return found


def subset(read: Mapping[str, str | None], names: Sequence[str]) -> dict[str, str | None]:
    """What was read of exactly these names."""
    return {name: read.get(name) for name in names}
