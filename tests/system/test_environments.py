"""Which environment a directory is: through moves, copies, remakes, and outside git."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from typing import TYPE_CHECKING

import pytest

from corral.errors import NotFoundError
from corral.model.environment import Existence
from corral.services.context import context_in
from corral.services.environments import find, register
from corral.services.places import locate
from corral.services.view import look
from support.command import ask, corral
from support.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def identity(where: Path) -> str:
    return register(context_in(str(where), os.environ)).id


def existence(where: Path, identifier: str) -> Existence:
    view = look(context_in(str(where), os.environ))
    return view.world.environments[identifier].existence


def test_every_worktree_is_an_environment_of_its_own(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    one, two = worktree("one"), worktree("two")
    assert len({identity(p) for p in (git_repo, one, two)}) == 3


def test_a_subdirectory_a_link_and_another_branch_are_the_same_environment(
    git_repo: Path, private_root: Path
) -> None:
    first = identity(git_repo)
    deep = git_repo / "a/b"
    deep.mkdir(parents=True)
    link = private_root / "link"
    link.symlink_to(git_repo)
    git(git_repo, "checkout", "-q", "-b", "other")
    assert identity(deep) == identity(link) == identity(git_repo) == first
    git(git_repo, "checkout", "-q", "--detach")
    assert identity(git_repo) == first


def test_a_moved_worktree_is_the_same_environment(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    tree = worktree("before")
    first = identity(tree)
    after = private_root / "after"
    git(git_repo, "worktree", "move", str(tree), str(after))
    assert identity(after) == first


def test_a_moved_main_checkout_is_the_same_environment(git_repo: Path, private_root: Path) -> None:
    first = identity(git_repo)
    after = private_root / "after"
    git_repo.rename(after)
    assert existence(private_root, first) is Existence.PRESENT
    assert identity(after) == first


def test_a_main_checkout_that_moved_away_takes_nothing_from_its_worktrees(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    git_repo.rename(private_root / "after")
    assert existence(private_root, first) is Existence.PRESENT
    with pytest.raises(NotFoundError, match="git worktree repair in the main checkout"):
        locate(str(tree))


def test_a_copied_checkout_is_another_environment(git_repo: Path, private_root: Path) -> None:
    first = identity(git_repo)
    copy = private_root / "copy"
    shutil.copytree(git_repo, copy, symlinks=True)
    assert find(context_in(str(copy), os.environ)) is None
    second = identity(copy)
    assert second != first
    assert identity(git_repo) == first
    assert identity(copy) == second


def test_a_copied_worktree_is_another_environment(
    worktree: Callable[[str], Path], private_root: Path
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    copy = private_root / "copy"
    shutil.copytree(tree, copy, symlinks=True)
    assert identity(copy) != first
    assert identity(tree) == first


def test_a_worktree_made_again_at_the_same_path_is_another_environment(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    git(git_repo, "worktree", "remove", "--force", str(tree))
    git(git_repo, "worktree", "add", "-q", "-f", str(tree), "-B", "again")
    second = identity(tree)
    assert second != first
    assert existence(git_repo, first) is Existence.GONE
    assert existence(git_repo, second) is Existence.PRESENT


def test_a_worktree_made_again_is_another_environment_though_it_got_the_same_inode(
    git_repo: Path, worktree: Callable[[str], Path], state_dir: Path
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    git(git_repo, "worktree", "remove", "--force", str(tree))
    git(git_repo, "worktree", "add", "-q", "-f", str(tree), "-B", "again")
    second = identity(tree)
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("UPDATE environment SET inode = ? WHERE id = ?", (tree.stat().st_ino, first))
    assert existence(git_repo, first) is Existence.GONE
    assert existence(git_repo, second) is Existence.PRESENT


def test_a_removed_worktree_is_gone_only_once_its_entry_is(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    shutil.rmtree(tree)
    assert existence(git_repo, first) is Existence.PRESENT
    git(git_repo, "worktree", "prune")
    assert existence(git_repo, first) is Existence.GONE


def test_a_worktree_on_a_disk_that_is_not_mounted_is_not_gone(
    git_repo: Path, worktree: Callable[[str], Path], state_dir: Path
) -> None:
    tree = worktree("tree")
    first = identity(tree)
    shutil.rmtree(tree)
    git(git_repo, "worktree", "prune")
    with sqlite3.connect(state_dir / "registry.sqlite3") as conn:
        conn.execute("UPDATE environment SET device = device + 1 WHERE id = ?", (first,))
    assert existence(git_repo, first) is Existence.UNKNOWN


def test_outside_git_the_real_path_counts(private_root: Path) -> None:
    plain, link = private_root / "plain", private_root / "link"
    plain.mkdir()
    link.symlink_to(plain)
    first = identity(plain)
    assert identity(link) == first
    shutil.rmtree(plain)
    assert existence(private_root, first) is Existence.GONE


def test_outside_git_a_configuration_marks_the_top(private_root: Path) -> None:
    deep = private_root / "project/a/b"
    deep.mkdir(parents=True)
    (private_root / "project/corral.toml").write_text("")
    assert identity(deep) == identity(private_root / "project")


@pytest.mark.parametrize("torn", ["", "env-", "../../x", "env-0123456789ab\nx", "\0"])
def test_a_torn_id_is_found_again_in_the_registry(git_repo: Path, torn: str) -> None:
    first = identity(git_repo)
    mark = git_repo / ".git/corral-environment"
    mark.write_text(torn)
    assert identity(git_repo) == first
    assert mark.read_text() == f"{first}\n"


def test_an_id_that_is_a_link_is_not_followed(git_repo: Path, private_root: Path) -> None:
    elsewhere = private_root / "elsewhere"
    elsewhere.write_text("env-0123456789ab\n")
    (git_repo / ".git/corral-environment").symlink_to(elsewhere)
    said = corral(git_repo, "up", "--port", "web", "--json", check=None)
    assert elsewhere.read_text() == "env-0123456789ab\n"
    assert "Traceback" not in said.err


def test_variables_of_git_do_not_lead_elsewhere(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("tree")
    first = identity(git_repo)
    variables = {"GIT_DIR": str(git_repo / ".git"), "GIT_WORK_TREE": str(git_repo)}
    up = ask(tree, "up", "--port", "web", env=variables)
    assert up["environment"]["path"] == str(tree)
    assert up["environment"]["id"] != first


def test_a_submodule_is_an_environment_of_its_own(git_repo: Path, private_root: Path) -> None:
    outer = private_root / "outer"
    subprocess.run(["git", "init", "-q", str(outer)], check=True)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(git_repo), "sub")
    assert identity(outer / "sub") != identity(outer)


def test_a_worktree_of_a_bare_repository_has_a_place(git_repo: Path, private_root: Path) -> None:
    bare = private_root / "shop.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(git_repo), str(bare)], check=True)
    tree = private_root / "tree"
    git(bare, "worktree", "add", "-q", str(tree), "-b", "tree")
    place = locate(str(tree))
    assert (place.repository, place.worktree, place.is_main) == ("shop", "tree", False)


def _worktree_elsewhere(git_repo: Path, worktree: Callable[[str], Path], target: Path) -> Path:
    tree = worktree("tree")
    corral(tree, "up", "--port", "web", "--db", "file")
    tree.rename(target)
    git(git_repo, "worktree", "prune")
    return tree


def test_a_worktree_moved_far_away_and_pruned_loses_nothing(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    far = private_root / "far"
    far.mkdir()
    _worktree_elsewhere(git_repo, worktree, far / "tree")
    report = ask(git_repo, "cleanup", "--yes", "--data")
    assert report["removed"] == []
    assert len(ask(git_repo, "port", "list", "--all")["ports"]) == 1


def test_a_main_clone_moved_far_away_keeps_its_data(git_repo: Path, private_root: Path) -> None:
    corral(git_repo, "up", "--port", "web", "--db", "file")
    far = private_root / "far"
    far.mkdir()
    git_repo.rename(far / "clone")
    assert ask(private_root, "cleanup", "--yes", "--data")["removed"] == []
    moved = ask(far / "clone", "status")["environment"]
    assert os.path.exists(moved["database"]["name"])


def test_what_is_really_removed_is_gone_for_all_its_witness(
    git_repo: Path, worktree: Callable[[str], Path], state_dir: Path
) -> None:
    tree = worktree("tree")
    corral(tree, "up", "--port", "web", "--db", "file")
    git(git_repo, "worktree", "remove", "--force", str(tree))
    assert ask(git_repo, "cleanup", "--yes", "--data")["removed"] != []
    assert ask(git_repo, "port", "list", "--all")["ports"] == []
    assert ask(git_repo, "session", "list")["sessions"] == []
    shutil.rmtree(git_repo)
    assert not any((state_dir / "environments").iterdir())
