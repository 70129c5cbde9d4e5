"""What `up` writes, what it leaves alone, and that exactly this is taken back."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from corral.config import PortWish
from corral.errors import InvalidValueError, RefusedError
from corral.services.up import Request
from support.environments import bring_up, take_files_back, variables_in
from support.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WEB = Request(ports=(PortWish("web"),))
COMPOSE = "services:\n  web:\n    image: x\n    ports: ['3000:80']\n"


def results(directory: Path, request: Request = WEB) -> dict[str, tuple[str, str]]:
    """Result and reason of every file that `up` speaks of, by relative path."""
    done = bring_up(directory, request)
    return {os.path.relpath(f.path, directory): (f.result, f.reason) for f in done.files}


def tree_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything below a directory but git's own."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if ".git" in path.relative_to(directory).parts:
            continue
        content = os.readlink(path).encode() if path.is_symlink() else b""
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
        found[str(path.relative_to(directory))] = (path.lstat().st_mode, content)
    return found


def read_back(path: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    return dict(dotenv_values(path))


def test_the_dotenv_file_is_private_excluded_and_read_back(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text(
        '[vars]\nODD = """two  \'words\' # \\\\ and\nlines %"""\nURL = "http://x:${ports.web}"\n'
    )
    git(git_repo, "add", "corral.toml")
    git(git_repo, "commit", "-qm", "Configure")
    assert results(git_repo) == {".env.local": ("written", "")}
    file = git_repo / ".env.local"
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_back(file) == variables_in(git_repo)
    assert git(git_repo, "status", "--porcelain") == ""


def test_a_second_up_rewrites_nothing(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    bring_up(git_repo, WEB)
    before = {p: p.stat().st_mtime_ns for p in git_repo.rglob("*") if p.is_file()}
    assert set(results(git_repo).values()) == {("unchanged", "")}
    assert {p: p.stat().st_mtime_ns for p in git_repo.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "mine",
    [
        b"",
        b"A=1\n",
        b"A=1",
        b"A=1\r\nB=2\r\n",
        b"A=1\r\nB=2",
        b"# a comment\n\n\n",
        "UMLAUT=\u00e4\u00f6\n".encode(),
        b"LATIN=\xe4\n",
    ],
)
def test_every_byte_of_the_users_file_stays_and_comes_back(git_repo: Path, mine: bytes) -> None:
    file = git_repo / ".env.local"
    file.write_bytes(mine)
    file.chmod(0o640)
    bring_up(git_repo, WEB)
    assert mine in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o640
    bring_up(git_repo, Request(ports=(PortWish("more"),)))
    assert take_files_back(git_repo)[".env.local"] == ("removed", "")
    assert file.read_bytes() == mine


def test_what_stands_around_the_block_survives_a_change_of_the_block(git_repo: Path) -> None:
    file = git_repo / ".env.local"
    file.write_text("A=1\n")
    bring_up(git_repo, WEB)
    file.write_text(file.read_text() + "B=2\n")
    bring_up(git_repo, Request(ports=(PortWish("api"),)))
    assert file.read_text().startswith("A=1\n# >>> corral")
    assert file.read_text().endswith("<<<\nB=2\n")
    assert "API_PORT" in file.read_text()


def test_a_block_with_changed_line_ends_is_still_one_block(git_repo: Path) -> None:
    file = git_repo / ".env.local"
    bring_up(git_repo, WEB)
    file.write_bytes(b"A=1\r\n" + file.read_bytes().replace(b"\n", b"\r\n"))
    bring_up(git_repo, WEB)
    assert file.read_bytes().count(b">>> corral") == 1
    take_files_back(git_repo)
    assert file.read_bytes() == b"A=1\r\n"


def test_a_block_whose_end_was_lost_is_told_from_the_users_lines(git_repo: Path) -> None:
    file = git_repo / ".env.local"
    bring_up(git_repo, WEB)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]) + b"MINE=1\n")
    bring_up(git_repo, WEB)
    assert file.read_bytes().endswith(b"<<<\nMINE=1\n")


def test_marks_that_do_not_pair_up_are_refused_before_anything_is_changed(
    git_repo: Path, state_dir: Path
) -> None:
    file = git_repo / ".env.local"
    torn = b"A=1\n# >>> corral env-1 bytes=9 sha256=00000000 >>>\nB=2\nC=3\n"
    file.write_bytes(torn)
    with pytest.raises(RefusedError, match=r"\.env\.local.*line 2"):
        bring_up(git_repo, WEB)
    assert file.read_bytes() == torn
    assert not state_dir.exists()


def test_a_tracked_file_is_left_alone_and_said(git_repo: Path) -> None:
    for name in (".env", ".env.local"):
        (git_repo / name).write_text("TRACKED=1\n")
    (git_repo / "compose.yaml").write_text(COMPOSE)
    git(git_repo, "add", "-f", ".env", ".env.local")
    found = results(git_repo)
    assert found[".env"] == found[".env.local"] == ("left", "git tracks it")
    assert found["compose.override.yaml"] == ("written", "")
    assert (git_repo / ".env").read_text() == "TRACKED=1\n"
    done = bring_up(git_repo, WEB)
    assert any("git tracks it" in words for words in done.words)


@pytest.mark.parametrize("target", ["elsewhere", "/nonexistent/x", "."])
def test_a_symlink_is_left_alone_and_said(git_repo: Path, private_root: Path, target: str) -> None:
    (private_root / "repo" / "elsewhere").write_text("MINE=1\n")
    (git_repo / ".env.local").symlink_to(target)
    assert results(git_repo)[".env.local"] == ("left", "it is a symlink")
    assert os.readlink(git_repo / ".env.local") == target
    assert (git_repo / "elsewhere").read_text() == "MINE=1\n"


def test_a_directory_or_pipe_in_the_place_is_left_alone(git_repo: Path) -> None:
    os.mkfifo(git_repo / ".env.local")
    assert results(git_repo)[".env.local"] == ("left", "it is no regular file")


def test_where_git_cannot_tell_nothing_is_written(git_repo: Path, private_root: Path) -> None:
    done = bring_up(git_repo, WEB, PATH=str(private_root))
    assert [f.result for f in done.files] == ["left"]
    assert not (git_repo / ".env.local").exists()


def test_no_dotenv_file_is_written_where_none_is_wanted(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[outputs]\ndotenv = ""\n')
    assert results(git_repo) == {}


def test_a_block_moves_along_with_its_setting(git_repo: Path) -> None:
    (git_repo / ".env.local").write_text("MINE=1\n")
    bring_up(git_repo, WEB)
    (git_repo / "corral.toml").write_text('[outputs]\ndotenv = "config/new.env"\n')
    assert results(git_repo) == {os.path.join("config", "new.env"): ("written", "")}
    assert (git_repo / ".env.local").read_text() == "MINE=1\n"


def test_outside_git_files_are_written_as_well(private_root: Path) -> None:
    plain = private_root / "plain"
    plain.mkdir()
    assert results(plain) == {".env.local": ("written", "")}
    take_files_back(plain)
    assert os.listdir(plain) == []


def test_a_copied_checkouts_block_of_the_other_environment_is_replaced(
    git_repo: Path, private_root: Path
) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    first = bring_up(git_repo, WEB)
    copy = private_root / "copy"
    shutil.copytree(git_repo, copy, symlinks=True)
    second = bring_up(copy, WEB)
    assert first.environment["id"] != second.environment["id"]
    for name in (".env", ".env.local", "compose.override.yaml"):
        assert first.environment["id"] not in (copy / name).read_text()
        assert second.environment["id"] in (copy / name).read_text()
    mine, its = (read_back(d / ".env")["COMPOSE_PROJECT_NAME"] for d in (git_repo, copy))
    assert mine != its
    assert results(git_repo)[".env"] == ("unchanged", "")


@pytest.fixture
def sources(git_repo: Path) -> Path:
    """A main checkout with things to link and to copy."""
    (git_repo / ".gitignore").write_text("*.secret\n.env*\n")
    (git_repo / "config").mkdir()
    (git_repo / "config" / "local.yml").write_text("local: 1\n")
    (git_repo / "big").mkdir()
    (git_repo / "big" / "file").write_text("big")
    (git_repo / "a.secret").write_text("secret")
    (git_repo / ".env").write_text("FROM_MAIN=1\n")
    return git_repo


def configure(tree: Path, text: str) -> None:
    (tree / "corral.toml").write_text(text)


def test_a_worktree_gets_links_and_copies_from_the_main_checkout(
    sources: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("one")
    configure(tree, '[files]\nlink = ["big"]\ncopy = ["config/local.yml"]\n')
    found = results(tree)
    assert found["big"] == found["config/local.yml"] == ("written", "")
    assert os.readlink(tree / "big") == str(sources / "big")
    assert (tree / "config" / "local.yml").read_text() == "local: 1\n"
    assert git(tree, "status", "--porcelain").split() == ["??", "corral.toml"]
    assert results(tree)["config/local.yml"] == ("unchanged", "")
    take_files_back(tree)
    assert set(tree_of(tree)) == {"README", "corral.toml"}
    assert (sources / "big" / "file").read_text() == "big"


@pytest.mark.usefixtures("sources")
def test_what_is_there_is_never_overwritten(worktree: Callable[[str], Path]) -> None:
    tree = worktree("one")
    (tree / "big").mkdir()
    (tree / "a.secret").write_text("mine")
    configure(tree, '[files]\nlink = ["big"]\ncopy = ["a.secret"]\n')
    found = results(tree)
    assert found["big"][0] == found["a.secret"][0] == "left"
    take_files_back(tree)
    assert (tree / "a.secret").read_text() == "mine"
    assert (tree / "big").is_dir()


@pytest.mark.usefixtures("sources")
def test_a_copy_that_was_changed_is_left_when_the_environment_goes(
    worktree: Callable[[str], Path],
) -> None:
    tree = worktree("one")
    configure(tree, '[files]\ncopy = ["a.secret", "big"]\n')
    bring_up(tree, WEB)
    (tree / "a.secret").write_text("changed")
    (tree / "big" / "more").write_text("mine")
    found = take_files_back(tree)
    assert found["a.secret"] == found["big"] == ("left", "it was changed since corral copied it")
    assert (tree / "big" / "more").exists()


@pytest.mark.usefixtures("git_repo")
def test_what_is_not_in_the_main_checkout_is_said(worktree: Callable[[str], Path]) -> None:
    tree = worktree("one")
    configure(tree, '[files]\ncopy = ["missing.yml"]\n')
    done = bring_up(tree, WEB)
    assert any("missing.yml is not in the main checkout" in words for words in done.words)


def test_the_main_checkout_gets_no_links_to_itself(sources: Path) -> None:
    configure(sources, '[files]\nlink = ["big"]\n')
    assert set(results(sources)) == {".env.local"}


def test_a_source_that_is_a_symlink_out_of_the_tree_is_not_copied(
    sources: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    (private_root / "private-key").write_text("key")
    (sources / "innocent").symlink_to(private_root / "private-key")
    tree = worktree("one")
    configure(tree, '[files]\ncopy = ["innocent"]\n')
    before = tree_of(tree)
    with pytest.raises(RefusedError, match="leads out of"):
        bring_up(tree, WEB)
    assert tree_of(tree) == before


@pytest.mark.usefixtures("sources")
def test_a_target_below_a_symlink_out_of_the_tree_is_refused(
    worktree: Callable[[str], Path], private_root: Path
) -> None:
    tree = worktree("one")
    (private_root / "outside").mkdir()
    (tree / "config").symlink_to(private_root / "outside")
    configure(tree, '[files]\ncopy = ["config/local.yml"]\n')
    with pytest.raises(RefusedError, match="leads out of"):
        bring_up(tree, WEB)
    assert os.listdir(private_root / "outside") == []


def test_the_dotenv_file_below_a_symlink_out_of_the_tree_is_refused(
    git_repo: Path, private_root: Path
) -> None:
    (private_root / "outside").mkdir()
    (git_repo / "away").symlink_to(private_root / "outside")
    configure(git_repo, '[outputs]\ndotenv = "away/.env"\n')
    with pytest.raises(RefusedError, match="leads out of"):
        bring_up(git_repo, WEB)
    assert os.listdir(private_root / "outside") == []


def test_the_worktree_include_file_is_honoured_for_ignored_files_only(
    sources: Path, worktree: Callable[[str], Path]
) -> None:
    (sources / "plain.txt").write_text("not ignored")
    (sources / ".worktreeinclude").write_text("*.secret\n*.txt\n.env\n")
    tree = worktree("one")
    found = results(tree)
    assert set(found) == {"a.secret", ".env", ".env.local"}
    assert (tree / "a.secret").read_text() == "secret"


def test_a_copied_env_file_gets_the_project_of_this_worktree(
    sources: Path, worktree: Callable[[str], Path]
) -> None:
    (sources / "compose.yaml").write_text(COMPOSE)
    main = bring_up(sources, WEB).environment
    (sources / ".worktreeinclude").write_text(".env\n.env.local\n")
    tree = worktree("one")
    (tree / "compose.yaml").write_text(COMPOSE)
    mine = bring_up(tree, WEB).environment
    text = (tree / ".env").read_text()
    assert text.startswith("FROM_MAIN=1\n# >>> corral")
    assert main["id"] not in text
    assert mine["id"] in text
    assert main["id"] not in (tree / ".env.local").read_text()
    take_files_back(tree)
    assert set(tree_of(tree)) == {"README", "compose.yaml"}


def test_what_the_user_added_to_a_copied_env_file_stays(
    sources: Path, worktree: Callable[[str], Path]
) -> None:
    (sources / ".worktreeinclude").write_text(".env\n")
    tree = worktree("one")
    (tree / "compose.yaml").write_text(COMPOSE)
    bring_up(tree, WEB)
    with (tree / ".env").open("a") as file:
        file.write("MINE=1\n")
    take_files_back(tree)
    assert (tree / ".env").read_text() == "FROM_MAIN=1\nMINE=1\n"


def test_a_linked_env_file_is_left_alone_and_said(
    sources: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("one")
    (tree / "compose.yaml").write_text(COMPOSE)
    configure(tree, '[files]\nlink = [".env"]\n')
    done = bring_up(tree, WEB)
    assert (tree / ".env").is_symlink()
    assert (sources / ".env").read_text() == "FROM_MAIN=1\n"
    assert any(".env is a link" in words for words in done.words)


def test_the_users_own_override_of_the_usual_name_is_not_touched(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    mine = "services:\n  web:\n    image: y\n"
    (git_repo / "compose.override.yaml").write_text(mine)
    done = bring_up(git_repo, WEB)
    assert (git_repo / "compose.override.yaml").read_text() == mine
    files = read_back(git_repo / ".env")["COMPOSE_FILE"]
    assert files is not None
    base, override, own = files.split(":")
    assert (base, override) == ("compose.yaml", "compose.override.yaml")
    assert os.path.isfile(own)
    assert own in done.environment["files"]
    assert any("not below it" in words for words in done.words)
    take_files_back(git_repo)
    assert not os.path.exists(own)
    assert set(tree_of(git_repo)) == {"README", "compose.yaml", "compose.override.yaml"}


def test_an_override_that_was_changed_is_the_users_now(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    bring_up(git_repo, WEB)
    file = git_repo / "compose.override.yaml"
    file.write_text(file.read_text() + "# mine\n")
    mine = file.read_text()
    bring_up(git_repo, WEB)
    assert file.read_text() == mine
    take_files_back(git_repo)
    assert file.read_text() == mine


def test_the_files_that_the_users_env_names_are_the_base(git_repo: Path) -> None:
    (git_repo / "a.yaml").write_text(COMPOSE)
    (git_repo / "b.yaml").write_text("services:\n  api:\n    image: y\n    ports: ['9000']\n")
    (git_repo / ".env").write_text("COMPOSE_FILE=a.yaml:b.yaml\n")
    view = bring_up(git_repo).environment
    assert set(view["ports"]) == {"web", "api"}
    files = read_back(git_repo / ".env")["COMPOSE_FILE"]
    assert files is not None
    assert files.startswith("a.yaml:b.yaml:/")
    assert bring_up(git_repo).environment == view


def test_a_stack_that_is_gone_takes_its_lines_along(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    bring_up(git_repo, WEB)
    (git_repo / "compose.yaml").unlink()
    bring_up(git_repo, WEB)
    assert not (git_repo / ".env").exists()


def test_no_compose_at_all_where_it_is_turned_off(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    configure(git_repo, "[compose]\nfiles = []\n")
    assert set(results(git_repo)) == {".env.local"}


def test_one_dotenv_file_for_everything_has_one_block(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text(COMPOSE)
    configure(git_repo, '[outputs]\ndotenv = ".env"\n')
    bring_up(git_repo, WEB)
    assert {"WEB_PORT", "COMPOSE_PROJECT_NAME", "COMPOSE_FILE"} <= set(read_back(git_repo / ".env"))
    assert (git_repo / ".env").read_text().count(">>> corral") == 1


def test_the_exclude_file_serves_all_worktrees_until_the_last_is_gone(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    exclude = git_repo / ".git" / "info" / "exclude"
    before = exclude.read_bytes()
    one, two = worktree("one"), worktree("two")
    for tree in (one, two):
        bring_up(tree, WEB)
    take_files_back(one)
    assert b"/.env.local" in exclude.read_bytes()
    assert git(two, "status", "--porcelain") == ""
    take_files_back(two)
    assert exclude.read_bytes() == before


def test_a_link_in_place_of_the_exclude_file_is_not_followed(
    git_repo: Path, private_root: Path
) -> None:
    exclude = git_repo / ".git" / "info" / "exclude"
    exclude.unlink()
    (private_root / "mine").write_text("x\n")
    exclude.symlink_to(private_root / "mine")
    done = bring_up(git_repo, WEB)
    assert (private_root / "mine").read_text() == "x\n"
    assert any("exclude" in words for words in done.words)


def test_a_value_that_a_dotenv_file_cannot_hold_is_named(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text('[vars]\nODD = "a\\rb"\n')
    with pytest.raises(InvalidValueError, match="variable ODD"):
        bring_up(git_repo, WEB)


def test_the_files_of_a_moved_worktree_are_found_again(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    tree = worktree("one")
    (tree / "compose.yaml").write_text(COMPOSE)
    bring_up(tree, WEB)
    moved = private_root / "moved"
    git(git_repo, "worktree", "move", str(tree), str(moved))
    assert set(take_files_back(moved)) == {".env", ".env.local", "compose.override.yaml"}
    assert set(tree_of(moved)) == {"README", "compose.yaml"}


def test_up_after_a_move_rewrites_nothing(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    bring_up(worktree("one"), WEB)
    git(git_repo, "worktree", "move", str(private_root / "trees" / "one"), str(private_root / "m"))
    assert results(private_root / "m") == {".env.local": ("unchanged", "")}


def test_the_worktree_local_configuration_is_excluded_too(git_repo: Path) -> None:
    bring_up(git_repo, WEB)
    (git_repo / "corral.local.toml").write_text("")
    assert git(git_repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["a b'$(touch x)", "UPPER/../..", "日本", "---", "n" * 200])
def test_a_hostile_name_of_a_worktree_becomes_a_safe_project(
    git_repo: Path, private_root: Path, name: str
) -> None:
    tree = private_root / "trees" / name.replace("/", "_").replace(".", "_")
    tree.parent.mkdir()
    git(git_repo, "worktree", "add", "-q", "--detach", str(tree))
    (tree / "compose.yaml").write_text(COMPOSE)
    bring_up(tree, WEB)
    project = read_back(tree / ".env")["COMPOSE_PROJECT_NAME"]
    assert project is not None
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", project)
    assert not (tree / "x").exists()
