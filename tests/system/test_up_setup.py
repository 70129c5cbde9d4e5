"""Commands of a repository's file: never before they were trusted, once, and again when changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from corral.errors import UntrustedError
from corral.services import trust
from support.command import corral
from support.environments import bring_up, context_of
from support.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.services.trust import Brought

ONE = "[setup]\nafter_up = ['echo one >> ran']\n"


def configure(tree: Path, text: str) -> None:
    (tree / "corral.toml").write_text(text)


def believe(tree: Path) -> None:
    context = context_of(tree)
    what = trust.brought(context)
    assert what is not None
    trust.trust(context, what)


def ran(tree: Path) -> list[str]:
    return (tree / "ran").read_text().split() if (tree / "ran").exists() else []


def test_nothing_runs_and_nothing_changes_before_it_was_trusted(
    git_repo: Path, state_dir: Path
) -> None:
    configure(git_repo, ONE)
    with pytest.raises(UntrustedError, match=r"echo one >> ran.*corral trust") as caught:
        bring_up(git_repo)
    assert caught.value.exit_status == 4
    assert ran(git_repo) == []
    assert not state_dir.exists()


def test_what_was_trusted_runs_once_with_the_environments_variables(git_repo: Path) -> None:
    command = 'test "$PWD" = "$WHERE" && echo $WEB_PORT >> ran'
    configure(git_repo, f"[ports]\nweb={{}}\n[setup]\nafter_up = ['''{command}''']\n")
    believe(git_repo)
    done = bring_up(git_repo, WHERE=str(git_repo))
    assert done.failure == ""
    assert done.ran == (command,)
    assert bring_up(git_repo).ran == ()
    assert ran(git_repo) == [str(done.environment["ports"]["web"])]


def test_changed_content_asks_again(git_repo: Path) -> None:
    configure(git_repo, ONE)
    believe(git_repo)
    bring_up(git_repo)
    configure(git_repo, f"{ONE}[vars]\nGREETING = 'hello'\n")
    with pytest.raises(UntrustedError):
        bring_up(git_repo)
    configure(git_repo, ONE.replace("one", "two"))
    with pytest.raises(UntrustedError):
        bring_up(git_repo)
    believe(git_repo)
    bring_up(git_repo)
    configure(git_repo, ONE)
    bring_up(git_repo)
    assert ran(git_repo) == ["one", "two", "one"]


def test_the_answer_of_a_person_is_remembered(git_repo: Path) -> None:
    configure(git_repo, ONE)
    asked: list[Brought] = []

    def no(what: Brought) -> bool:
        asked.append(what)
        return False

    with pytest.raises(UntrustedError):
        bring_up(git_repo, None, no)
    assert asked[0].commands == ("echo one >> ran",)
    bring_up(git_repo, None, lambda _: True)
    bring_up(git_repo, None, no)
    assert len(asked) == 1


def test_a_new_worktree_with_the_same_content_is_trusted_another_repository_is_not(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    configure(git_repo, ONE)
    git(git_repo, "add", "corral.toml")
    git(git_repo, "commit", "-qm", "Configure")
    believe(git_repo)
    tree = worktree("one")
    bring_up(tree)
    assert ran(tree) == ["one"]
    git(private_root, "clone", "-q", str(git_repo), str(private_root / "clone"))
    with pytest.raises(UntrustedError):
        bring_up(private_root / "clone")


def test_a_local_file_beside_it_is_part_of_what_is_trusted(git_repo: Path) -> None:
    configure(git_repo, ONE)
    believe(git_repo)
    (git_repo / "corral.local.toml").write_text("[setup]\nafter_up = ['echo local >> ran']\n")
    with pytest.raises(UntrustedError, match=r"corral\.local\.toml"):
        bring_up(git_repo)


def test_the_users_own_commands_need_no_trust(git_repo: Path) -> None:
    configure(git_repo, "[ports]\nweb = {}\n")
    bring_up(git_repo, CORRAL_SETUP_AFTER_UP="echo mine >> ran")
    assert ran(git_repo) == ["mine"]


def test_a_template_command_needs_trust_only_where_it_would_run(git_repo: Path) -> None:
    configure(git_repo, "[database.template]\nmigrate = 'make migrate'\n")
    bring_up(git_repo)
    url = "postgresql://localhost/x"
    with pytest.raises(UntrustedError, match="make migrate"):
        bring_up(git_repo, CORRAL_DATABASE_ISOLATION="schema", CORRAL_DATABASE_URL=url)


def test_a_command_that_fails_is_said_and_starts_over(git_repo: Path) -> None:
    text = "[setup]\nafter_up = ['echo a >> ran', 'test -e fixed', 'echo c >> ran']\n"
    configure(git_repo, text)
    believe(git_repo)
    done = bring_up(git_repo)
    assert "'test -e fixed' ended with exit status 1" in done.failure
    assert ran(git_repo) == ["a"]
    assert (git_repo / ".env.local").exists()
    (git_repo / "fixed").write_text("")
    assert bring_up(git_repo).failure == ""
    assert ran(git_repo) == ["a", "a", "c"]


def test_a_directory_with_a_hostile_name_is_data(private_root: Path) -> None:
    tree = private_root / "a'; touch $(echo pwned) \"b"
    tree.mkdir()
    configure(tree, ONE)
    believe(tree)
    bring_up(tree)
    assert ran(tree) == ["one"]
    assert sorted(os.listdir(tree)) == [".env.local", "corral.toml", "ran"]


def test_the_file_that_was_read_is_the_one_that_is_named(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    (git_repo / "corral.toml").write_text('[setup]\nafter_up = ["true"]\n')
    tree = worktree("tree")
    (tree / "corral.toml").write_text('[setup]\nafter_up = ["touch here"]\n')
    for words in (("up",), ("trust", "--check")):
        said = corral(tree, *words, check=4)
        assert f"corral.toml in {tree} " in said.err
    assert f"corral.toml in {tree} brings" in corral(tree, "trust").out
