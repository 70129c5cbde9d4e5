"""What `install` wrote is what an agent calls: a whole session through its own settings file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import settle
from support.command import ask, corral

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.agents import Agent

SETTINGS = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json"}
SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
# An agent's PATH need not have the directory that corral is in.
BARE = {"PATH": "/usr/bin:/bin"}


def call(one: Agent, home: Path, event: str, **fields: Any) -> str:
    """Run every hook of an event as the agent does; what they printed."""
    said = ""
    settings = json.loads((home / SETTINGS[one.kind]).read_text())
    for group in settings["hooks"][event]:
        assert "matcher" not in group
        for hook in group["hooks"]:
            # With `args` no shell is used; without it a shell reads the command.
            args = hook.get("args")
            argv = ["sh", "-c", hook["command"]] if args is None else [hook["command"], *args]
            payload = one.payload(event, **fields)
            done = one.run(*argv, input=payload, env={**BARE, "HOME": str(home)})
            assert done.status == 0, done
            assert done.err == ""
            said += done.out
    return said


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_session_lives_and_ends_by_the_hooks_that_install_wrote(
    agent: Callable[..., Agent], private_home: Path, git_repo: Path, kind: str
) -> None:
    (git_repo / "corral.toml").write_text("[ports]\nweb = 3427\n")
    corral(git_repo, "install", kind, "--yes")
    one = agent("s-installed", kind=kind)
    said = call(one, private_home, "SessionStart", source="startup")
    assert "WEB_PORT=3427" in said
    assert one.variables["WEB_PORT"] == "3427"
    (owner,) = [o for o in ask(git_repo, "session", "list")["sessions"] if o["sessions"]]
    assert owner["sessions"] == ["s-installed"]
    assert owner["life"] == "live"
    assert owner["epochs"][0]["anchor"] == one.pid
    pid = one.server(*SLEEP)
    call(one, private_home, "SessionEnd", reason="other")
    settle(pid)
    (owner,) = [o for o in ask(git_repo, "session", "list")["sessions"] if o["sessions"]]
    assert owner["life"] == "over"
    assert owner["epochs"][0]["released_at"]


def test_a_command_whose_path_has_blanks_and_quotes_is_called_all_the_same(
    agent: Callable[..., Agent], private_home: Path, private_root: Path, git_repo: Path
) -> None:
    binaries = private_root / "it's mine" / "bin"
    binaries.mkdir(parents=True)
    for name in ("corral", "corral-hook"):
        (binaries / name).symlink_to(Path(sys.executable).parent / name)
    one = agent("s-blank", kind="codex")
    done = one.run(str(binaries / "corral"), "install", "codex", "--yes")
    assert done.status == 0
    settings = json.loads((private_home / SETTINGS["codex"]).read_text())
    (group,) = settings["hooks"]["SessionStart"]
    command = group["hooks"][0]["command"]
    assert shlex.split(command) == [str(binaries / "corral-hook"), "codex"]
    assert "corral" in call(one, private_home, "SessionStart", source="startup")
    assert ask(git_repo, "session", "list")["sessions"][0]["sessions"] == ["s-blank"]
