"""Rows that are not understood: every command still works, and none of them fails by one."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral, start

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    *("status --all", "status --explain", "env", "url web", "up", "run -- true", "port list --all"),
    *("run --name web -- true", "run --detach --name web --wait-ready 1 -- true", "logs web"),
    *("db list --all", "session list", "locks", "events", "doctor", "reap --dry-run", "reap"),
    *("cleanup", "cleanup --yes", "stop web", "down --yes"),
)
CLAIM = "INSERT INTO claim VALUES ('{}', '{}', 'abc', '{}', {}, 'w', 0, '')"
HOLDER = '[["pid",1],["start_ticks",1],["boot_id","b"],["pid_namespace",1]]'
ENVIRONMENT = (
    "INSERT INTO environment VALUES ('{}', {}, 'git', '/x', '', '/x', '', '', 0, 0, 0, 'n', "
    "'corral', {})"
)
LINE = "INSERT INTO journal VALUES (NULL, {}, 'a', 'b', 'c', 'd', NULL, NULL, '', '', '')"
ROWS = (
    CLAIM.format("port", "tcp", "mine", "'HERE', NULL"),
    CLAIM.format("port", "udp", "of another", "'env-000000000001', NULL"),
    CLAIM.format("port", "tcp@::1", "of a process", f"NULL, '{HOLDER}'"),
    CLAIM.format("address", "ipv4", "address", "'HERE', NULL"),
    CLAIM.format("database", "of a kind to come", "database", "'HERE', NULL"),
    ENVIRONMENT.format("env-000000000001", "'/a' || char(0) || 'b'", 0),
    ENVIRONMENT.format("env-000000000002", "'a'", 0),
    ENVIRONMENT.format("env-000000000003", "'/a'", 1e300),
    LINE.format(1e300),
    LINE.format(-1e18),
    "INSERT INTO spooled VALUES ('x', 'abc')",
    "INSERT INTO keep VALUES ('process', '1@@x')",
)


@pytest.mark.parametrize(
    "detail",
    [
        '{"ports": ["web"], "argv": 5, "log": 5}',
        '{"ports": {"web": "x"}, "argv": [1], "host": 7, "of": []}',
    ],
)
def test_no_command_fails_by_them(git_repo: Path, state_dir: Path, detail: str) -> None:
    here = ask(git_repo, "up", "--port", "web")["environment"]["id"]
    start(git_repo, "sleep", "600", name="web")
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        for row in ROWS:
            conn.execute(row.replace("HERE", here))
        conn.execute("UPDATE resource SET detail = ?", (detail,))
    conn.close()
    failed = {}
    for command in COMMANDS:
        said = corral(git_repo, *command.split(), check=None)
        if "fault of corral" in said.err or "Traceback" in said.err:
            failed[command] = said.err
    assert failed == {}
