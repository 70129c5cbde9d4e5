"""`corral install git`: a hook that brings new worktrees up, and never is in git's way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.command import ask, corral
from support.engines import require_engine
from support.repositories import git, make_repository

if TYPE_CHECKING:
    from collections.abc import Callable

MINE = '#!/bin/sh\nprintf "%s\\n" "$@" >> "$HOME/mine"\nexit 0\n'


@pytest.fixture
def project(git_repo: Path) -> Path:
    """A repository whose worktrees want a port."""
    (git_repo / "corral.toml").write_text("[ports]\nweb = 3428\n")
    git(git_repo, "add", "corral.toml")
    git(git_repo, "commit", "-q", "-m", "Ports")
    return git_repo


def hook_of(repository: Path) -> Path:
    return repository / ".git/hooks/post-checkout"


def write_hook(repository: Path, text: str, mode: int = 0o755) -> Path:
    path = hook_of(repository)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def environment_of(where: Path) -> object:
    return ask(where, "status")["environment"]


def test_a_new_worktree_comes_up_and_another_branch_changes_nothing(
    project: Path, worktree: Callable[[str], Path]
) -> None:
    corral(project, "install", "git", "--yes")
    tree = worktree("feature")
    assert "WEB_PORT=" in (tree / ".env.local").read_text()
    assert environment_of(tree) is not None
    git(project, "checkout", "-q", "-b", "other")
    git(project, "checkout", "-q", "main")
    git(project, "checkout", "-q", "--", "README")
    assert environment_of(project) is None
    assert not (project / ".env.local").exists()


def test_a_hook_of_the_users_is_kept_and_still_runs(
    project: Path, private_home: Path, worktree: Callable[[str], Path]
) -> None:
    path = write_hook(project, MINE, 0o750)
    corral(project, "install", "git", "--yes")
    assert path.stat().st_mode & 0o777 == 0o750
    tree = worktree("feature")
    assert (tree / ".env.local").exists()
    head = git(project, "rev-parse", "HEAD")
    assert (private_home / "mine").read_text().split() == ["0" * 40, head, "1"]
    corral(project, "uninstall", "git", "--yes")
    assert path.read_text() == MINE


def test_a_hook_of_the_users_that_fails_fails_as_it_did(project: Path) -> None:
    write_hook(project, "#!/bin/sh -eu\nfalse\n")
    corral(project, "install", "git", "--yes")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "worktree", "add", "-q", "-b", "b", "../b")
    assert (project.parent / "b/.env.local").exists()


def test_the_second_time_nothing_is_written_and_uninstall_leaves_nothing(
    project: Path, worktree: Callable[[str], Path]
) -> None:
    tree = worktree("before")
    for where in (project, tree, project / ".git"):
        assert ask(where, "install", "git", "--dry-run")["applied"] is False
    assert not hook_of(project).exists()
    corral(tree, "install", "git", "--yes")
    before = hook_of(project).read_bytes()
    assert corral(project, "install", "git", "--yes").out == "already there\n"
    assert hook_of(project).read_bytes() == before
    assert ask(project, "uninstall", "git", "--yes")["changes"][0]["change"] == "remove"
    assert not hook_of(project).exists()
    assert corral(project, "uninstall", "git").out == "nothing of corral's to take out\n"


@pytest.mark.parametrize("how", ["its configuration is wrong", "it is killed", "it is gone"])
def test_git_goes_on_whatever_corral_does(project: Path, private_root: Path, how: str) -> None:
    corral(project, "install", "git", "--yes")
    own = Path(sys.executable).parent / "corral"
    text = hook_of(project).read_text()
    assert str(own) in text
    stand_in = private_root / "corral-instead"
    if how == "its configuration is wrong":
        (project / "corral.toml").write_text("[ports]\nweb = 'x'\n")
        git(project, "commit", "-q", "-a", "-m", "Wrong")
    else:
        if how == "it is killed":
            stand_in.write_text("#!/bin/sh\nkill -9 $$\n")
            stand_in.chmod(0o755)
        hook_of(project).write_text(text.replace(str(own), str(stand_in)))
    environ = {**os.environ, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["git", "worktree", "add", "-q", "-b", "b", private_root / "b"],
        cwd=project,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert (private_root / "b/README").exists()
    assert not (private_root / "b/.env.local").exists()
    assert ("git goes on" in done.stderr) is (how != "it is gone")
    if how == "it is gone":
        assert done.stderr == ""


def test_a_corral_on_path_is_called_where_the_installed_one_is_gone(
    project: Path, private_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corral(project, "install", "git", "--yes")
    own = Path(sys.executable).parent
    path = hook_of(project)
    path.write_text(path.read_text().replace(str(own / "corral"), "/gone/corral"))
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    git(project, "worktree", "add", "-q", "-b", "b", str(private_root / "b"))
    assert (private_root / "b/.env.local").exists()


def test_what_git_exports_leads_nobody_to_another_repository(
    project: Path, private_root: Path
) -> None:
    """As in a hook or an alias of git's: GIT_DIR and its like are set, also odd ones."""
    corral(project, "install", "git", "--yes")
    other = make_repository(private_root / "other")
    text = hook_of(project).read_text()
    own = str(Path(sys.executable).parent / "corral")
    shown = private_root / "shown"
    stand_in = private_root / "corral-instead"
    stand_in.write_text(f"#!/bin/sh\nenv | grep ^GIT_ >{shown}\npwd >>{shown}\n")
    stand_in.chmod(0o755)
    hook_of(project).write_text(text.replace(own, str(stand_in)))
    environ = {**os.environ, "GIT_INDEX_FILE": f"{other}/.git/index", "GIT_X": "a\nGIT_Y=b c"}
    tree = private_root / "b"
    git(project, "worktree", "add", "-q", "--no-checkout", "-b", "b", str(tree))
    done = subprocess.run(
        [hook_of(project), "0" * 40, "1" * 40, "1"], cwd=tree, env=environ, check=True
    )
    assert done.returncode == 0
    assert shown.read_text() == f"{tree}\n"


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh"])
@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (("0" * 40, "a" * 40, "1"), True),
        (("0" * 64, "a" * 64, "1"), True),
        (("0" * 39 + "1", "a" * 40, "1"), False),
        (("0" * 40, "a" * 40, "0"), False),
        (("", "a", "1"), False),
        ((), False),
    ],
)
def test_only_a_first_checkout_counts_in_every_shell(
    project: Path, private_root: Path, shell: str, arguments: tuple[str, ...], calls: bool
) -> None:
    if shell in {"dash", "zsh"}:
        require_engine(shell)
    write_hook(project, f"#!/usr/bin/env {shell}\nset -eu\n")
    corral(project, "install", "git", "--yes")
    own = str(Path(sys.executable).parent / "corral")
    stand_in = private_root / "corral"
    stand_in.write_text(f'#!/bin/sh\necho "$*" >{private_root}/called\nexit 1\n')
    stand_in.chmod(0o755)
    path = hook_of(project)
    path.write_text(path.read_text().replace(own, str(stand_in)))
    done = subprocess.run([shell, path, *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done
    assert (private_root / "called").exists() is calls


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_a_closed_stderr_does_not_end_the_users_hook(
    project: Path, private_home: Path, shell: str
) -> None:
    if shell == "dash":
        require_engine(shell)
    write_hook(project, f"#!/usr/bin/env {shell}\nset -eu\n{MINE}")
    corral(project, "install", "git", "--yes")
    words = [shell, "-eu", str(hook_of(project)), "0" * 40, "a" * 40, "1"]
    subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *words], cwd=project, check=True)
    assert (private_home / "mine").exists()


@pytest.mark.parametrize("where", ["absolute", "relative", "home"])
def test_another_hooks_path_is_honoured(
    project: Path, private_root: Path, private_home: Path, where: str
) -> None:
    places = {
        "absolute": (str(private_root / "hooks"), private_root / "hooks"),
        "relative": (".githooks", project / ".githooks"),
        "home": ("~/hooks", private_home / "hooks"),
    }
    value, directory = places[where]
    git(project, "config", "core.hooksPath", value)
    (project / "deep/er").mkdir(parents=True)
    said = corral(project / "deep/er", "install", "git", "--yes")
    assert (directory / "post-checkout").exists()
    assert not hook_of(project).exists()
    assert str(directory) in said.err
    corral(project, "uninstall", "git", "--yes")
    assert not (directory / "post-checkout").exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_hooks_that_are_switched_off_are_told(project: Path, command: str) -> None:
    git(project, "config", "core.hooksPath", "/dev/null")
    said = corral(project, command, "git", "--yes", check=2)
    assert "/dev/null, where core.hooksPath leads, is no directory" in said.err
    assert "--unset" in said.err


def test_a_bare_repository_has_hooks_as_well(project: Path, private_root: Path) -> None:
    bare = private_root / "bare.git"
    git(project, "clone", "-q", "--bare", ".", str(bare))
    corral("/", "install", "git", "--yes", "--env", str(bare))
    git(bare, "worktree", "add", "-q", str(private_root / "tree"), "main")
    assert (private_root / "tree/.env.local").exists()


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("#!/usr/bin/env python3\nprint()\n", 0o755, "no shell script"),
        ("\x7fELF\0", 0o755, "is a program"),
        (MINE, 0o644, "not executable"),
        (MINE, 0o555, "read-only"),
        ("#!/bin/sh\n# <<< corral post-checkout <<<\n", 0o755, "pair up"),
    ],
)
def test_what_cannot_be_edited_is_refused_by_name_and_nothing_changed(
    project: Path, text: str, mode: int, says: str
) -> None:
    path = write_hook(project, text, mode)
    said = corral(project, "install", "git", "--yes", "--json", check=2)
    (problem,) = said.document["problems"]
    assert str(path) in problem["message"]
    assert says in problem["message"]
    assert problem["remedy"]
    assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == mode


def test_a_hook_that_leads_nowhere_is_refused(project: Path) -> None:
    path = hook_of(project)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("gone")
    said = corral(project, "install", "git", "--yes", check=2)
    assert f"{path} is a symbolic link" in said.err
    assert path.is_symlink()


def test_a_block_that_the_user_changed_stays_and_is_named(project: Path) -> None:
    corral(project, "install", "git", "--yes")
    path = hook_of(project)
    path.write_text(path.read_text().replace('corral" up', 'corral" up --db file'))
    before = path.read_bytes()
    (left,) = ask(project, "uninstall", "git", "--yes")["left"]
    assert left["path"] == str(path)
    assert "somebody changed" in left["reason"]
    corral(project, "install", "git", "--yes", check=2)
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_directory_without_a_repository_is_refused(private_root: Path, command: str) -> None:
    for where, says in ((private_root, "no git repository"), (private_root / "no", "not a dir")):
        said = corral("/", command, "git", "--yes", "--env", str(where), check=2)
        assert says in said.err
