"""Rows that name nothing any more go; whatever still leads to something stays."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from typing import TYPE_CHECKING, NoReturn, cast

from corral.errors import EnumerationError
from corral.model.resource import Kind
from corral.services.pruning import prune
from support.command import alive, ask, corral, start
from support.environments import context_of
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from corral.contracts import Backend
    from support.processes import Tracker

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
LONG = 40 * 86400.0


def rows(state_dir: Path, query: str) -> list[str]:
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        found = [str(row[0]) for row in conn.execute(query)]
    conn.close()
    return found


def kept(state_dir: Path) -> list[str]:
    return rows(state_dir, "SELECT id FROM keep")


def sessions(state_dir: Path) -> list[str]:
    return rows(state_dir, "SELECT session FROM alias ORDER BY session")


def session(where: Path, name: str) -> str:
    """A session that starts and ends; its owner."""
    corral(where, "session", "start", "--session", name)
    corral(where, "session", "end", "--session", name)
    (owner,) = (
        each["owner"]
        for each in ask(where, "session", "list", "--all")["sessions"]
        if name in each["sessions"]
    )
    return str(owner)


def make_old(state_dir: Path) -> None:
    """Everything that is known so far was 40 days ago."""
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("UPDATE owner SET created_at = created_at - ?", (LONG,))
        conn.execute(
            "UPDATE epoch SET opened_at = opened_at - ?1, released_at = released_at - ?1", (LONG,)
        )
    conn.close()


def test_what_was_kept_is_forgotten_once_its_process_is_gone(
    git_repo: Path, state_dir: Path, track: Tracker
) -> None:
    first, second = (track.pid(start(git_repo, *SLEEP, name=name)) for name in ("one", "two"))
    for pid in (first, second):
        corral(git_repo, "keep", f"process/{pid}")
    assert len(kept(state_dir)) == 2
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(first))
    corral(git_repo, "cleanup", "--yes")
    (left,) = kept(state_dir)
    assert left.startswith(f"{second}@")
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("INSERT INTO keep VALUES ('process', '1@1@another-boot@1')")
        conn.execute("INSERT INTO keep VALUES ('process', 'not understood')")
        conn.execute("INSERT INTO keep VALUES ('container', 'abc')")
    conn.close()
    corral(git_repo, "unkeep", f"process/{second}")
    assert sorted(kept(state_dir)) == ["abc", "not understood"]


def test_an_owner_that_is_long_over_is_forgotten(git_repo: Path, state_dir: Path) -> None:
    session(git_repo, "old")
    make_old(state_dir)
    session(git_repo, "fresh")
    corral(git_repo, "session", "start", "--session", "live")
    corral(git_repo, "cleanup", "--dry-run")
    assert sessions(state_dir) == ["fresh", "live", "old"]
    corral(git_repo, "cleanup", "--yes", "--backend", "process")
    assert sessions(state_dir) == ["fresh", "live", "old"]
    corral(git_repo, "cleanup", "--yes")
    assert sessions(state_dir) == ["fresh", "live"]
    assert len(rows(state_dir, "SELECT id FROM epoch")) == 2
    assert session(git_repo, "old")


def test_an_owner_of_which_anything_is_left_stays_the_same(
    git_repo: Path, state_dir: Path, track: Tracker
) -> None:
    owners = {name: session(git_repo, name) for name in ("marked", "claims", "parent", "alive")}
    track.spawn(SLEEP, env={"CORRAL_OWNER": owners["marked"]})
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute(
            "INSERT INTO claim (kind, scope, value, name, worker, created_at) "
            "VALUES ('port', 'tcp', '127.0.0.1:29999', 'x', ?, 0)",
            (owners["claims"],),
        )
    conn.close()
    child = session(git_repo, "child")
    corral(git_repo, "session", "start", "--session", "alive")
    make_old(state_dir)
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("UPDATE owner SET parent = ? WHERE id = ?", (owners["parent"], child))
        conn.execute("UPDATE owner SET created_at = ? WHERE id = ?", (time.time(), child))
    conn.close()
    corral(git_repo, "cleanup", "--yes", check=None)
    assert sessions(state_dir) == ["alive", "child", "claims", "marked", "parent"]
    for name, owner in owners.items():
        assert session(git_repo, name) == owner


class _Blind:
    """A backend that cannot look."""

    name, kinds = "blind", frozenset({Kind.VOLUME})

    def observe(self, view: object) -> NoReturn:
        del view
        raise EnumerationError("no answer", backend=self.name)


def test_nobody_is_forgotten_where_a_backend_could_not_look(
    git_repo: Path, state_dir: Path
) -> None:
    session(git_repo, "old")
    make_old(state_dir)
    prune(context_of(git_repo), [cast("Backend", _Blind())])
    assert sessions(state_dir) == ["old"]
    prune(context_of(git_repo), [])
    assert sessions(state_dir) == []
