"""`corral install claude|codex` and `uninstall`: files of the user's, edited as they are shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corral.decide.agent_settings import EVENTS
from support.command import COMMAND, ask, corral
from support.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.processes import Tracker

AGENTS = {"claude": (".claude", "settings.json"), "codex": (".codex", "hooks.json")}
OWN = b"""{
    "model": "mine",
    "env": {"TOKEN": "caf\xc3\xa9"},
    "hooks": {
        "SessionEnd": [
            {"hooks": [{"type": "command", "command": "mine"}]}
        ],
        "Stop": []
    },
    "permissions": {"allow": ["a", "b"]}
}"""

_agents = pytest.mark.parametrize("agent", AGENTS)
_both = pytest.mark.parametrize("command", ["install", "uninstall"])


def settings_of(home: Path, agent: str, content: bytes | None = None) -> Path:
    directory, name = AGENTS[agent]
    path = home / directory / name
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return path


def tree(directory: Path) -> dict[str, tuple[int, bytes | str]]:
    """Everything below a directory: mode, and content or target."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(directory.rglob("*")):
        what: bytes | str = b""
        if path.is_symlink():
            what = os.readlink(path)
        elif path.is_file():
            what = path.read_bytes()
        found[str(path)] = (path.lstat().st_mode, what)
    return found


def commands(path: Path) -> list[str]:
    hooks: Mapping[str, Any] = json.loads(path.read_bytes())["hooks"]
    return [hook["command"] for event in EVENTS for g in hooks[event] for hook in g["hooks"]]


@_agents
@pytest.mark.parametrize("content", [OWN, OWN + b"\n", b"{}", b"{\n}\n", b'{"a":1,"hooks":{}}'])
def test_uninstall_brings_everything_back_to_the_byte(
    private_home: Path, agent: str, content: bytes
) -> None:
    path = settings_of(private_home, agent, content)
    path.chmod(0o640)
    before = tree(private_home)
    data = ask(private_home, "install", agent, "--yes")
    assert (data["target"], data["applied"], data["left"]) == (agent, True, [])
    assert {(c["path"], c["change"]) for c in data["changes"]} == {
        (str(path), "edit"),
        (str(path.parent / "corral-installed.json"), "create"),
        (str(path.parent / "skills/corral/SKILL.md"), "create"),
    }
    assert {**json.loads(path.read_bytes()), "hooks": 0} == {**json.loads(content), "hooks": 0}
    assert path.stat().st_mode & 0o777 == 0o640
    ask(private_home, "uninstall", agent, "--yes")
    assert tree(private_home) == before


@_agents
def test_what_install_made_goes_and_so_do_its_directories(private_home: Path, agent: str) -> None:
    before = tree(private_home)
    ask(private_home, "install", agent, "--yes")
    assert settings_of(private_home, agent).stat().st_mode & 0o777 == 0o600
    ask(private_home, "uninstall", agent, "--yes")
    assert tree(private_home) == before


@_agents
def test_the_second_time_nothing_is_written(private_home: Path, agent: str) -> None:
    settings_of(private_home, agent, OWN)
    corral(private_home, "install", agent, "--yes")
    before = tree(private_home)
    said = corral(private_home, "install", agent)
    assert said.out == "already there\n"
    assert ask(private_home, "install", agent)["applied"] is True
    assert tree(private_home) == before
    corral(private_home, "uninstall", agent, "--yes")
    assert corral(private_home, "uninstall", agent).out == "nothing of corral's to take out\n"


@_agents
@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run", "--yes"), ()])
def test_without_a_yes_it_only_shows(private_home: Path, agent: str, words: tuple[str]) -> None:
    path = settings_of(private_home, agent, OWN)
    for command, sign in (("install", "+"), ("uninstall", "-")):
        before = tree(private_home)
        said = corral(private_home, command, agent, *words)
        assert f"--- {path}" in said.out
        assert [line for line in said.out.splitlines() if line[0] == sign and "corral-hook" in line]
        assert ask(private_home, command, agent, *words)["applied"] is False
        assert tree(private_home) == before
        corral(private_home, "install", agent, "--yes")


@pytest.mark.parametrize(("answer", "there"), [("n", False), ("", False), ("y", True)])
def test_in_a_terminal_it_asks(
    private_home: Path, track: Tracker, answer: str, there: bool
) -> None:
    path = settings_of(private_home, "claude", OWN)
    with Terminal(track, [*COMMAND, "install", "claude"], private_home) as terminal:
        terminal.expect("corral-hook")
        terminal.expect("make these changes")
        terminal.type(f"{answer}\n")
        assert terminal.process.wait(30) == 0
    assert (b"corral-hook" in path.read_bytes()) is there


def test_what_changed_while_it_asked_is_left_alone(private_home: Path, track: Tracker) -> None:
    path = settings_of(private_home, "claude", OWN)
    with Terminal(track, [*COMMAND, "install", "claude"], private_home) as terminal:
        terminal.expect("make these changes")
        path.write_bytes(b'{"model": "newer"}')
        before = tree(private_home)
        terminal.type("y\n")
        assert terminal.process.wait(30) == 4
        terminal.expect("changed in the meantime")
    assert tree(private_home) == before


def _make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@_agents
@_both
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.write_bytes(OWN[:-1]), "no JSON"),
        (lambda path: path.write_bytes(b""), "no JSON"),
        (lambda path: path.write_bytes(b"[]"), "no JSON object"),
        (lambda path: path.write_bytes(b'{"hooks": 1}'), "no object"),
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "UTF-8"),
        (lambda path: (path.unlink(), path.symlink_to("gone")), "gone, which is not there"),
        (lambda path: (path.unlink(), path.symlink_to(path.name)), "which is not there"),
        (lambda path: path.chmod(0o444), "read-only"),
        (lambda path: (path.unlink(), path.mkdir()), "no regular file"),
        (_make_pipe, "no regular file"),
        (lambda path: (path.unlink(), path.parent.rmdir(), path.parent.touch()), "no directory"),
    ],
)
def test_what_cannot_be_edited_is_refused_by_name_and_nothing_changed(
    private_home: Path, agent: str, command: str, spoil: Any, says: str
) -> None:
    path = settings_of(private_home, agent, OWN)
    spoil(path)
    before = tree(private_home)
    said = corral(private_home, command, agent, "--yes", "--json", check=2)
    (problem,) = said.document["problems"]
    assert str(path.parent) in problem["message"]
    assert says in problem["message"]
    assert problem["remedy"]
    assert tree(private_home) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user's")
@_both
def test_a_file_of_another_user_is_refused(private_home: Path, command: str) -> None:
    path = settings_of(private_home, "claude", OWN)
    os.chown(path, 65534, 65534)
    said = corral(private_home, command, "claude", "--yes", check=2)
    assert f"{path} belongs to another user" in said.err
    assert path.read_bytes() == OWN


@_agents
def test_a_link_into_a_repository_of_dotfiles_stays_one(
    private_home: Path, private_root: Path, agent: str
) -> None:
    real = private_root / "dotfiles.json"
    real.write_bytes(OWN)
    path = settings_of(private_home, agent)
    path.parent.mkdir()
    path.symlink_to(real)
    corral(private_home, "install", agent, "--yes")
    assert path.readlink() == real
    assert b"corral-hook" in real.read_bytes()
    corral(private_home, "uninstall", agent, "--yes")
    assert path.readlink() == real
    assert real.read_bytes() == OWN


@pytest.mark.parametrize(
    ("agent", "variable"), [("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")]
)
def test_the_agents_own_variable_says_where(
    private_home: Path, private_root: Path, agent: str, variable: str
) -> None:
    where = private_root / "elsewhere"
    corral(private_home, "install", agent, "--yes", env={variable: str(where)})
    assert (where / AGENTS[agent][1]).exists()
    assert (where / "skills/corral/SKILL.md").exists()
    assert not settings_of(private_home, agent).exists()
    corral(private_home, "uninstall", agent, "--yes", env={variable: str(where)})
    assert not where.exists()


def test_a_skill_that_the_user_changed_stays_and_is_named(private_home: Path) -> None:
    corral(private_home, "install", "claude", "--yes")
    skill = private_home / ".claude/skills/corral/SKILL.md"
    skill.write_text("mine now\n")
    for command in ("install", "uninstall"):
        (left,) = ask(private_home, command, "claude", "--yes")["left"]
        assert left == {"path": str(skill), "reason": "it was changed since corral wrote it"}
    assert skill.read_text() == "mine now\n"
    assert not settings_of(private_home, "claude").exists()


def test_a_skill_of_the_same_name_that_is_the_users_is_never_touched(private_home: Path) -> None:
    skill = private_home / ".claude/skills/corral/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("mine\n")
    before = tree(private_home)
    for command in ("install", "uninstall"):
        (left,) = ask(private_home, command, "claude", "--yes")["left"]
        assert left == {"path": str(skill), "reason": "corral did not write it"}
    assert tree(private_home) == before


def test_a_skill_that_is_a_link_to_corrals_own_is_never_removed(private_home: Path) -> None:
    shown = Path(__file__).parents[2] / "integrations/claude/skills/corral"
    (private_home / ".claude/skills").mkdir(parents=True)
    (private_home / ".claude/skills/corral").symlink_to(shown)
    before = tree(private_home)
    ask(private_home, "install", "claude", "--yes")
    ask(private_home, "uninstall", "claude", "--yes")
    assert tree(private_home) == before
    assert (shown / "SKILL.md").exists()


def test_a_skill_that_became_a_link_to_corrals_own_is_never_removed(private_home: Path) -> None:
    corral(private_home, "install", "claude", "--yes")
    skill = private_home / ".claude/skills/corral"
    shown = Path(__file__).parents[2] / "integrations/claude/skills/corral"
    (skill / "SKILL.md").unlink()
    skill.rmdir()
    skill.symlink_to(shown)
    ask(private_home, "uninstall", "claude", "--yes")
    assert (shown / "SKILL.md").exists()
    assert skill.is_symlink()


@_agents
def test_an_agents_directory_that_is_a_link_is_like_any_other(
    private_home: Path, private_root: Path, agent: str
) -> None:
    real = private_root / "dotfiles"
    (real / "skills").mkdir(parents=True)
    (private_home / AGENTS[agent][0]).symlink_to(real)
    settings_of(private_home, agent).write_bytes(OWN)
    before = tree(real)
    assert ask(private_home, "install", agent, "--yes")["left"] == []
    assert tree(real) != before
    assert ask(private_home, "uninstall", agent, "--yes")["left"] == []
    assert tree(real) == before


def test_a_skill_of_an_older_corral_is_brought_up_to_date(private_home: Path) -> None:
    corral(private_home, "install", "claude", "--yes")
    home = private_home / ".claude"
    new = (home / "skills/corral/SKILL.md").read_bytes()
    (home / "skills/corral/SKILL.md").write_bytes(b"as it was\n")
    noted = json.loads((home / "corral-installed.json").read_text())
    noted["skill"] = sha256(b"as it was\n").hexdigest()
    (home / "corral-installed.json").write_text(json.dumps(noted))
    assert ask(private_home, "install", "claude", "--yes")["left"] == []
    assert (home / "skills/corral/SKILL.md").read_bytes() == new


def test_a_torn_receipt_disables_nothing(private_home: Path) -> None:
    settings_of(private_home, "claude", OWN)
    corral(private_home, "install", "claude", "--yes")
    receipt = private_home / ".claude/corral-installed.json"
    receipt.write_text('{"schema": "corral-ins')
    data = ask(private_home, "uninstall", "claude", "--yes")
    assert settings_of(private_home, "claude").read_bytes() == OWN
    assert [Path(each["path"]).name for each in data["left"]] == ["SKILL.md"]
    assert receipt.exists()


def test_a_program_that_moved_is_named_anew(private_home: Path) -> None:
    corral(private_home, "install", "claude", "--yes")
    path = settings_of(private_home, "claude")
    before = path.read_text()
    (old,) = set(commands(path))
    path.write_text(before.replace(old, "/gone/bin/corral-hook"))
    (change,) = ask(private_home, "install", "claude", "--yes")["changes"]
    assert change["change"] == "edit"
    assert path.read_text() == before


def test_the_program_is_named_beside_the_corral_that_was_called(
    private_home: Path, private_root: Path
) -> None:
    binaries = private_root / "bin"
    binaries.mkdir()
    for name in ("corral", "corral-hook"):
        (binaries / name).symlink_to(Path(sys.executable).parent / name)
    argv = [str(binaries / "corral"), "install", "claude", "--yes"]
    subprocess.run(argv, cwd=private_home, check=True, capture_output=True)
    assert set(commands(settings_of(private_home, "claude"))) == {str(binaries / "corral-hook")}


def test_settings_in_which_a_stranger_calls_corral_are_told(private_home: Path) -> None:
    hook = {"type": "command", "command": "corral-hook claude"}
    content = json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}).encode()
    path = settings_of(private_home, "claude", content)
    (left,) = ask(private_home, "install", "claude", "--yes")["left"]
    assert left["path"] == str(path)
    assert "SessionStart and SessionEnd" in left["reason"]
    assert path.read_bytes() == content


@_both
def test_an_unknown_target_is_refused(private_home: Path, command: str) -> None:
    said = corral(private_home, command, "emacs", "--json", check=2)
    assert "claude" in said.document["problems"][0]["message"]


@_agents
def test_a_file_in_the_place_of_the_receipt_is_the_users(
    git_repo: Path, private_home: Path, agent: str
) -> None:
    settings = settings_of(private_home, agent, OWN)
    mine = settings.parent / "corral-installed.json"
    mine.write_text("my own list of what corral has installed\n")
    before = tree(private_home)
    said = corral(git_repo, "install", agent, "--yes", check=2)
    assert f"{mine} is not what corral writes there" in said.err
    assert tree(private_home) == before
