"""Each environment's own SQLite file: made once, cloned from a live seed, reset and dropped."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import ConfigurationError, NotFoundError, RefusedError
from corral.services import databases, environments
from corral.services.up import Request
from support.environments import bring_up, context_of, variables_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE = Request(isolation="file")


def path_of(directory: Path) -> str:
    database: dict[str, Any] = bring_up(directory).environment["database"]
    assert database["isolation"] == "file"
    assert database["url"] == f"sqlite:///{database['name']}"
    return str(database["name"])


def rows(path: str | Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as conn:
        return conn.execute("SELECT * FROM t ORDER BY 1").fetchall()


def make_seed(path: Path, *values: int, mode: str = "delete") -> sqlite3.Connection:
    conn = sqlite3.connect(path)
    conn.execute(f"PRAGMA journal_mode = {mode}")
    conn.execute("CREATE TABLE t(a)")
    conn.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    conn.commit()
    return conn


def test_two_worktrees_have_two_private_databases(
    git_repo: Path, worktree: Callable[[str], Path], state_dir: Path
) -> None:
    found = []
    for tree in (git_repo, worktree("one")):
        assert bring_up(tree, FILE).made
        path = path_of(tree)
        assert path.startswith(str(state_dir))
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert variables_in(tree)["DATABASE_URL"] == f"sqlite:///{path}"
        with closing(sqlite3.connect(path)) as conn:
            conn.execute("CREATE TABLE t(a)")
        found.append(path)
    assert len(set(found)) == 2


def test_a_second_up_keeps_the_data(git_repo: Path) -> None:
    bring_up(git_repo, FILE)
    make_seed(path := path_of(git_repo), 7).close()  # type: ignore[arg-type]
    assert not bring_up(git_repo, FILE).made
    assert rows(path) == [(7,)]


def test_a_seed_is_cloned_with_what_its_log_holds_and_is_not_touched(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    seed = git_repo / "dev.sqlite3"
    with closing(make_seed(seed, 1, 2, mode="wal")) as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO t VALUES (3)")
        writer.commit()
        before = seed.read_bytes()
        tree = worktree("one")
        (tree / "corral.toml").write_text("[database]\nisolation='file'\nseed='dev.sqlite3'\n")
        bring_up(tree)
        assert rows(path_of(tree)) == [(1,), (2,), (3,)]
        assert seed.read_bytes() == before
    with closing(sqlite3.connect(path_of(tree))) as conn:
        conn.execute("DELETE FROM t")
        conn.commit()
    assert rows(seed) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_cloning_leaves_nothing_beside_the_seed(git_repo: Path, mode: str) -> None:
    seed = git_repo / "seeds" / "dev.sqlite3"
    seed.parent.mkdir()
    make_seed(seed, 1, mode=mode).close()
    before, time = seed.read_bytes(), seed.stat().st_mtime_ns
    (git_repo / "corral.toml").write_text(
        "[database]\nisolation='file'\nseed='seeds/dev.sqlite3'\n"
    )
    bring_up(git_repo)
    assert os.listdir(seed.parent) == ["dev.sqlite3"]
    assert (seed.read_bytes(), seed.stat().st_mtime_ns) == (before, time)


def test_the_worktrees_own_seed_comes_first(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    make_seed(git_repo / "dev.sqlite3", 1).close()
    tree = worktree("one")
    make_seed(tree / "dev.sqlite3", 2).close()
    (tree / "corral.toml").write_text("[database]\nisolation='file'\nseed='dev.sqlite3'\n")
    bring_up(tree)
    assert rows(path_of(tree)) == [(2,)]


def test_a_seed_that_is_no_database_leaves_none_behind(git_repo: Path, state_dir: Path) -> None:
    (git_repo / "dev.sqlite3").write_text("this is no database at all, but long enough" * 50)
    (git_repo / "corral.toml").write_text("[database]\nisolation='file'\nseed='dev.sqlite3'\n")
    with pytest.raises(ConfigurationError, match=r"dev\.sqlite3"):
        bring_up(git_repo)
    left = [name for _, _, names in os.walk(state_dir / "environments") for name in names]
    assert left == [".corral-nonce"]


def test_a_seed_that_went_away_does_not_matter_once_the_database_is_there(git_repo: Path) -> None:
    make_seed(git_repo / "dev.sqlite3", 1).close()
    (git_repo / "corral.toml").write_text("[database]\nisolation='file'\nseed='dev.sqlite3'\n")
    bring_up(git_repo)
    (git_repo / "dev.sqlite3").unlink()
    assert rows(path_of(git_repo)) == [(1,)]


def test_a_reset_starts_from_the_seed_again(git_repo: Path) -> None:
    make_seed(git_repo / "dev.sqlite3", 1).close()
    (git_repo / "corral.toml").write_text("[database]\nisolation='file'\nseed='dev.sqlite3'\n")
    bring_up(git_repo)
    path = path_of(git_repo)
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("INSERT INTO t VALUES (2)")
        conn.commit()
    context = context_of(git_repo)
    environment = environments.require(context)
    database = databases.require(context, environment)
    databases.reset(context, environment, database, str(git_repo / "dev.sqlite3"))
    assert rows(path) == [(1,)]
    assert sorted(os.listdir(os.path.dirname(path))) == [".corral-nonce", "database.sqlite3"]


def test_a_dropped_database_is_gone_with_its_claim(git_repo: Path) -> None:
    bring_up(git_repo, FILE)
    path = path_of(git_repo)
    context = context_of(git_repo)
    environment = environments.require(context)
    assert databases.drop(context, environment, databases.require(context, environment))
    assert not os.path.exists(path)
    assert "DATABASE_URL" not in variables_in(git_repo)
    with pytest.raises(NotFoundError, match="no database"):
        databases.require(context, environment)


def test_nothing_is_dropped_from_a_directory_of_another_nonce(git_repo: Path) -> None:
    bring_up(git_repo, FILE)
    path = path_of(git_repo)
    with open(os.path.join(os.path.dirname(path), ".corral-nonce"), "w", encoding="ascii") as file:
        file.write("0" * 32)
    context = context_of(git_repo)
    environment = environments.require(context)
    with pytest.raises(RefusedError, match="nonce"):
        databases.drop(context, environment, databases.require(context, environment))
    assert os.path.exists(path)


def test_another_kind_of_database_is_refused_and_nothing_changed(git_repo: Path) -> None:
    bring_up(git_repo, FILE)
    path = path_of(git_repo)
    with pytest.raises(RefusedError, match="already") as caught:
        bring_up(git_repo, Request(isolation="container"))
    assert caught.value.exit_status == 4
    assert path_of(git_repo) == path


@pytest.mark.parametrize(("mode", "variable"), [("schema", "DB_SCHEMA"), ("database", "DB_NAME")])
def test_a_schema_or_database_is_claimed_and_not_pretended(
    git_repo: Path, mode: str, variable: str
) -> None:
    url = "postgresql://user@db.example:5433/acme?sslmode=disable"
    done = bring_up(git_repo, Request(isolation=mode), CORRAL_DATABASE_URL=url)
    database = done.environment["database"]
    assert database["isolation"] == mode
    assert database["name"] in database["url"]
    found = variables_in(git_repo)
    assert found[variable] == database["name"]
    assert found["DATABASE_URL"] == database["url"]
    assert not done.made
    assert any("not created" in words for words in done.words)


def test_a_container_is_a_service_of_the_environments_own_project(git_repo: Path) -> None:
    view = bring_up(git_repo, Request(isolation="container")).environment
    found = variables_in(git_repo)
    assert found["DATABASE_URL"].endswith(f"@127.0.0.1:{view['ports']['database']}/app")
    assert found["DB_CONTAINER"] == view["database"]["name"]
    assert "PORT" not in found
    assert bring_up(git_repo).environment == view
    env = (git_repo / ".env").read_text()
    override = env.partition("COMPOSE_FILE=")[2].partition("\n")[0]
    with open(override, encoding="utf-8") as file:
        assert "postgres" in file.read()
    own = os.path.dirname(override)
    secret = found["DATABASE_URL"].partition("@")[0].rpartition(":")[2]
    for name in ("database-server.env", "database-client.env"):
        with open(os.path.join(own, name), encoding="utf-8") as file:
            assert secret in file.read()
        assert os.stat(os.path.join(own, name)).st_mode & 0o777 == 0o600


def test_the_databases_port_does_not_take_the_name_of_the_sole_port(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text("[ports]\nweb = {}\n")
    view = bring_up(git_repo, Request(isolation="container")).environment
    assert variables_in(git_repo)["PORT"] == str(view["ports"]["web"])
