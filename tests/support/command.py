"""corral as a user types it: real processes, the real command line, JSON read back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COMMAND = (sys.executable, "-m", "corral.cli.main")


class Said(NamedTuple):
    """What a command left: exit status, both streams, and the JSON document if there is one."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["data"]
        return found


def corral(
    where: str | Path,
    *words: str,
    env: Mapping[str, str | None] | None = None,
    check: int | None = 0,
    timeout: float = 60,
) -> Said:
    """Run `corral WORDS` in a directory; `env` adds variables (None removes one)."""
    variables = dict(os.environ)
    for name, value in (env or {}).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=where,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )
    said = Said(done.returncode, done.stdout, done.stderr)
    if check is not None:
        assert said.status == check, f"corral {' '.join(words)}: {said}"
    return said


def ask(where: str | Path, *words: str, **options: Any) -> dict[str, Any]:
    """Run `corral WORDS --json` and return its data."""
    own, rest = list(words), []
    if "--" in own:
        at = own.index("--")
        own, rest = own[:at], own[at:]
    return corral(where, *own, "--json", *rest, **options).data


def start(where: str | Path, *argv: str, name: str = "", **options: Any) -> int:
    """`corral run --detach`; the pid of what was started."""
    words = ["run", "--detach", *(["--name", name] if name else [])]
    return int(ask(where, *words, "--", *argv, **options)["pid"])


def pids(rows: list[dict[str, Any]]) -> set[int]:
    """The pids of the process rows that are no supervisors."""
    return {
        int(row["id"]) for row in rows if row["kind"] == "process" and row["state"] != "supervisor"
    }


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
