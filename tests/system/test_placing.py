"""Links and copies into a worktree: never over anything, never out of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from corral.errors import RefusedError
from corral.services.placing import copy, digest, is_inside, link, refuse_escape, remove_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(private_root: Path) -> Path:
    source = private_root / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_text("a")
    (source / "a").chmod(0o750)
    (source / "sub" / "b").write_bytes(b"\0\xff" * 1000)
    (source / "sub" / "out").symlink_to("/etc")
    return source


def test_a_copy_of_a_directory_has_the_same_digest(tree: Path, private_root: Path) -> None:
    target = private_root / "deep" / "copy"
    copy(str(tree), str(target))
    assert digest(str(target)) == digest(str(tree))
    assert (target / "a").stat().st_mode & 0o777 == 0o750
    assert os.readlink(target / "sub" / "out") == "/etc"
    (target / "sub" / "b").write_bytes(b"x")
    assert digest(str(target)) != digest(str(tree))


def test_nothing_is_copied_or_linked_over_what_is_there(tree: Path, private_root: Path) -> None:
    taken = private_root / "taken"
    taken.write_text("mine")
    for place in (copy, link):
        with pytest.raises(FileExistsError):
            place(str(tree / "a"), str(taken))
    assert taken.read_text() == "mine"


def test_a_copy_that_fails_leaves_nothing(tree: Path, private_root: Path) -> None:
    (tree / ("n" * 250)).write_text("x")
    deep = private_root / "/".join(["d" * 200] * 19)
    deep.mkdir(parents=True)
    with pytest.raises(OSError, match="too long"):
        copy(str(tree), str(deep / "copy"))
    assert os.listdir(deep) == []


def test_special_files_are_passed_over(tree: Path, private_root: Path) -> None:
    os.mkfifo(tree / "pipe")
    copy(str(tree), str(private_root / "copy"))
    assert not (private_root / "copy" / "pipe").exists()
    assert digest(str(tree)) != digest(str(private_root / "copy"))


def test_removing_never_follows_a_link(tree: Path, private_root: Path) -> None:
    outside = private_root / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    (tree / "to-outside").symlink_to(outside)
    remove_tree(str(tree))
    remove_tree(str(tree))
    assert not tree.exists()
    assert (outside / "keep").exists()


def test_a_path_whose_directory_is_a_link_out_of_the_tree_is_refused(
    tree: Path, private_root: Path
) -> None:
    (tree / "away").symlink_to(private_root)
    with pytest.raises(RefusedError, match="away/x"):
        refuse_escape(str(tree), "away/x")
    (tree / "within").symlink_to(tree / "sub")
    assert refuse_escape(str(tree), "within/x") == str(tree / "within" / "x")
    assert refuse_escape(str(tree), "a") == str(tree / "a")


def test_a_neighbour_with_the_same_beginning_is_not_inside(private_root: Path) -> None:
    (private_root / "ab").mkdir()
    assert not is_inside(str(private_root / "a"), str(private_root / "ab"))
