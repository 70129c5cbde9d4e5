"""Pages as they are executed: the console blocks of a page, run in one shell, and what they print.

A block is fenced as ```console. A line that starts with `$ ` is a command (`> ` continues it), the
lines below it are what it prints, stdout and stderr together. `...` stands for any lines. Ids,
pids, ports, ages and temporary paths are compared as such, not by value.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_END = "--corral-docs-end--"
# What runs on the machine besides, whoever looks: no page can know it.
_SHARED = re.compile(r"^shared runtime, never stopped\n(?:  .*(?:\n|\Z))+", re.MULTILINE)
_VARYING = (
    (re.compile(r"\benv-[0-9a-f]{12}\b"), "env-ID"),
    (re.compile(r"\bown-[0-9a-f]{16}\b"), "own-ID"),
    (re.compile(r"\b(rec|session)-[0-9a-f]{8,}\b"), r"\1-ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "WHEN"),
    (re.compile(r"\bpid \d+\b"), "pid N"),
    (re.compile(r"\bsha256=[0-9a-f]+\b"), "sha256=X"),
    (re.compile(r"\bbytes=\d+\b"), "bytes=N"),
    (re.compile(r"\bprocess (process )?\d+\b"), "process N"),
    (re.compile(r"\b[23]\d{4}\b"), "PORT"),
    (re.compile(r"\b\d+(\.\d+)?(s|m|h)\b"), "AGE"),
    (re.compile(r"\b\d+ s of grace\b"), "N s of grace"),
    (re.compile(r" {2,}"), "  "),
)


class Step(NamedTuple):
    """One command of a page and what it is said to print."""

    command: str
    expected: str


def steps(page: Path) -> list[Step]:
    """Every command of a page, in order."""
    found = []
    for block in _FENCE.findall(page.read_text(encoding="utf-8")):
        command = ""
        lines: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    found.append(Step(command, "\n".join(lines)))
                command, lines = line[2:], []
            elif line.startswith("> ") and not lines:
                command += "\n" + line[2:]
            else:
                lines.append(line)
        if command:
            found.append(Step(command, "\n".join(lines)))
    return found


def run(page: Path, where: Path, environ: Mapping[str, str]) -> list[tuple[Step, str]]:
    """Run all commands of a page in one shell; each step with what it really printed."""
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        cwd=where,
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    seen = []
    try:
        for step in steps(page):
            shell.stdin.write(f"{step.command}\necho; echo {_END}\n")
            shell.stdin.flush()
            lines = []
            for line in shell.stdout:
                if line.rstrip("\n") == _END:
                    break
                lines.append(line.rstrip("\n"))
            # The line before the end is empty, or ends a last line that had no end.
            seen.append((step, "\n".join(lines).rstrip("\n")))
    finally:
        shell.stdin.close()
        shell.wait(30)
        shell.stdout.close()
    return seen


def normal(text: str, where: Path) -> list[str]:
    """The lines of a text with whatever varies from run to run named instead of shown."""
    text = text.replace(os.path.realpath(where), "/home/you").replace(str(where), "/home/you")
    text = _SHARED.sub("", text)
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def agrees(expected: list[str], real: list[str]) -> bool:
    """Whether real lines are the expected ones, where `...` stands for any."""
    if not expected:
        return not real
    if expected[0].strip() == "...":
        return any(agrees(expected[1:], real[n:]) for n in range(len(real) + 1))
    return bool(real) and expected[0] == real[0] and agrees(expected[1:], real[1:])
