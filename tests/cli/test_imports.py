"""What each quick command may import: start-up time is a budget, and imports spend it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.command import corral

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# What the parser of every command brings along.
_ARGPARSE = frozenset({
    "argparse", "collections", "contextlib", "copyreg", "enum", "functools", "gettext", "importlib",
    "itertools", "keyword", "locale", "math", "operator", "re", "reprlib", "types", "warnings",
})  # fmt: skip
# What it takes to read and write the registry.
_REGISTRY = frozenset({"atexit", "errno", "fcntl", "json"})
# What it takes to look at processes and at what listens.
_LOOK = frozenset({"select", "struct"})
_ASK = _ARGPARSE | _REGISTRY | {"gc"}

# command -> the top-level modules that it may import beyond those of a bare interpreter.
ALLOWED: dict[tuple[str, ...], frozenset[str]] = {
    ("--version",): frozenset({"gc"}),
    ("status",): _ASK | _LOOK,
    ("status", "--json"): _ASK | _LOOK,
    ("env",): _ASK,
    ("url", "web"): _ASK,
    ("events",): _ASK,
    ("session", "list"): _ASK,
    ("port", "list"): _ASK | {"hashlib"},
    ("locks",): _ASK | {"hashlib"},
    ("reap",): _ASK | _LOOK,
    ("cleanup",): _ASK | _LOOK,
    # no registry: it has to do with files of the user's only
    ("install", "claude", "--dry-run"): _ARGPARSE
    | {"difflib", "errno", "gc", "hashlib", "heapq", "json", "shlex"},
    # prctl, signals, a process's identity
    ("run", "--", "true"): _ARGPARSE | _REGISTRY | {"ctypes", "select", "signal", "struct"},
}

# What an entry point does; the file that holds it is the installer's, with imports of its own.
_COMMAND = "import sys; from corral.cli.main import console; sys.exit(console())"


def loaded(argv: Sequence[str], directory: Path) -> set[str]:
    """Every module that a program of this interpreter loads, by the interpreter's own account."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *argv],
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split("|") for line in done.stderr.splitlines() if "|" in line)
    return {line[-1].strip() for line in lines if line[0].startswith("import time:")}


def imported(arguments: tuple[str, ...], directory: Path) -> set[str]:
    """Top-level names of the modules that a command adds to a bare interpreter's.

    Private ones and our own left out.
    """
    names = loaded(("-c", _COMMAND, *arguments), directory) - loaded(("-c", "pass"), directory)
    tops = {name.partition(".")[0] for name in names}
    return {name for name in tops if not name.startswith("_")} - {"corral"}


@pytest.mark.parametrize("command", ALLOWED, ids=" ".join)
def test_a_quick_command_imports_nothing_that_it_does_not_need(
    command: tuple[str, ...], git_repo: Path
) -> None:
    corral(git_repo, "up", "--port", "web")
    surplus = imported(command, git_repo) - ALLOWED[command]
    assert not surplus


# What the agent waits for when its session starts in an environment that is up.
_HOOK_START = frozenset({
    "atexit", "collections", "contextlib", "copyreg", "enum", "errno", "fcntl", "functools", "gc",
    "itertools", "json", "keyword", "math", "operator", "re", "reprlib", "select", "types",
})  # fmt: skip
_HOOKS = {
    "SessionStart": _HOOK_START,
    # Neither JSON nor SQLite, nor anything that brings `re`: only what /proc and the spool need.
    "SessionEnd": frozenset({"errno", "gc", "select"}),
}

_HOOK_PROGRAM = """
import os, sys
bare = set(sys.modules)
def leave(status):
    names = sorted(set(sys.modules) - bare)
    os.write(2, " ".join(names).encode())
    quit_(status)
quit_, os._exit = os._exit, leave
from corral.cli.hook import main
sys.argv[1:] = ["claude"]
main()
"""


@pytest.mark.parametrize("event", _HOOKS)
def test_a_hook_imports_nothing_that_the_agent_would_wait_for(event: str, git_repo: Path) -> None:
    payload = {"hook_event_name": event, "session_id": "s-1", "cwd": str(git_repo)}

    def call() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _HOOK_PROGRAM],
            input=json.dumps(payload),
            cwd=git_repo,
            capture_output=True,
            text=True,
            check=True,
        )

    call()  # the first start provisions
    tops = {name.partition(".")[0] for name in call().stderr.split()}
    surplus = {name for name in tops if not name.startswith("_")} - {"corral"} - _HOOKS[event]
    assert not surplus
