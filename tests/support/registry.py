"""What the registry says, read without corral."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def recorded(state_dir: Path) -> list[dict[str, Any]]:
    """Every record of a process in the registry, as plain values; none without a registry."""
    path = state_dir / "registry.sqlite3"
    if not path.exists():
        return []
    with sqlite3.connect(path) as conn:
        rows = conn.execute(
            "SELECT id, role, name, owner, environment, state, identity, detail FROM resource "
            "WHERE kind = 'process' ORDER BY created_at, id"
        ).fetchall()
    conn.close()
    names = ("id", "role", "name", "owner", "environment", "state", "identity", "detail")
    return [
        {
            **dict(zip(names, row, strict=True)),
            "identity": dict(json.loads(row[6])),
            "detail": json.loads(row[7]),
        }
        for row in rows
    ]


def recorded_pids(state_dir: Path) -> set[int]:
    """The pids of all live records."""
    return {r["identity"]["pid"] for r in recorded(state_dir) if r["state"] == "live"}
