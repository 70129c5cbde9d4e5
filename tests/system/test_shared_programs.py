"""Programs that are only ever shown, with look-alikes that carry real names on real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.agents import settle
from support.command import alive, ask, pids, start
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

# One of each kind that the table knows.
NAMES = (
    "dockerd",
    "containerd-shim-runc-v2",
    "docker-proxy",
    "colima",
    "limactl",
    "OrbStack",
    "com.docker.backend",
    "tmux",
    "zellij",
    "ssh-agent",
    "gpg-agent",
    "watchman",
    "sccache",
    "dbus-daemon",
    "cloudflared",
    "tailscaled",
    "openvpn",
    "wireguard-go",
    "code",
    "nvim",
    "firefox",
    "alacritty",
)
# A shell that stays, with a child: what is below a shown program is as safe as the program.
STAY = "sleep 600 & sleep 600"
SLEEP = (sys.executable, "-c", "import signal; signal.pause()")


@pytest.fixture
def look_alike(private_root: Path) -> Callable[[str], str]:
    """Makes an executable of that name, which is a shell."""
    directory = private_root / "bin"
    directory.mkdir()

    def make(name: str) -> str:
        shutil.copy(os.path.realpath("/bin/sh"), directory / name)
        return str(directory / name)

    return make


def _below(pid: int, track: Tracker) -> list[int]:
    def children() -> list[int]:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    found = eventually(lambda: children() if len(children()) == 2 else None, message="its children")
    return [track.pid(child) for child in found or ()]


def _rows(seen: dict[str, Any], group: str) -> dict[int, dict[str, Any]]:
    return {int(r["id"]): r for r in seen[group] if r["kind"] == "process"}


@pytest.mark.parametrize("name", NAMES)
def test_a_look_alike_that_corral_itself_started_is_shown_and_left(
    git_repo: Path, track: Tracker, look_alike: Callable[[str], str], name: str
) -> None:
    pid = track.pid(start(git_repo, look_alike(name), "-c", STAY))
    below = _below(pid, track)
    shown = _rows(ask(git_repo, "status"), "shared")
    assert shown[pid]["state"] == "running"
    assert "only ever shown" in shown[pid]["reason"]
    report = ask(git_repo, "reap")
    assert pids(report["removed"]).isdisjoint({pid, *below})
    assert all(map(alive, [pid, *below]))


@pytest.mark.parametrize("name", ["containerd-shim-runc-v2", "tmux", "ngrok", "watchman", "code"])
def test_a_look_alike_that_an_agents_shell_left_is_shown_and_left(
    agent: MakeAgent, track: Tracker, look_alike: Callable[[str], str], name: str, git_repo: Path
) -> None:
    """The shim of a container that was started from a marked shell carries the mark."""
    one = agent()
    one.start()
    pid = track.pid(one.background(f"setsid {look_alike(name)} -c '{STAY}'"))
    below = _below(pid, track)
    taken = track.pid(one.background("setsid sleep 600"))
    one.end()
    settle(taken)
    assert all(map(alive, [pid, *below]))
    assert pid in _rows(ask(git_repo, "status"), "shared")


def test_a_program_that_changed_its_title_is_known_by_its_executable(
    git_repo: Path, track: Tracker, private_root: Path
) -> None:
    program = private_root / "cloudflared"
    shutil.copy(os.path.realpath(sys.executable), program)
    home = {"PYTHONHOME": sys.base_prefix}
    rename = "open('/proc/self/comm', 'w').write('web'); import signal; signal.pause()"
    pid = track.pid(start(git_repo, str(program), "-c", rename, env=home))
    eventually(lambda: _comm(pid) == "web")
    ask(git_repo, "reap")
    assert alive(pid)


def _comm(pid: int) -> str:
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read().strip()


def test_a_headless_browser_is_a_tests_and_goes(
    git_repo: Path, track: Tracker, look_alike: Callable[[str], str]
) -> None:
    browser = look_alike("chrome")
    headless = track.pid(start(git_repo, browser, "-c", "sleep 600 & wait", "--headless=new"))
    persons = track.pid(start(git_repo, browser, "-c", "sleep 600 & wait"))
    report = ask(git_repo, "reap")
    assert headless in pids(report["removed"])
    assert alive(persons)


def test_the_runtime_and_tunnels_are_shown_with_their_state_whoever_started_them(
    git_repo: Path, track: Tracker, look_alike: Callable[[str], str]
) -> None:
    tunnel = track.spawn([look_alike("cloudflared"), "-c", STAY])
    runtime = track.spawn([look_alike("limactl"), "-c", STAY])
    for pid in (tunnel.pid, runtime.pid):
        _below(pid, track)
    runtime.send_signal(signal.SIGSTOP)
    eventually(lambda: _rows(ask(git_repo, "status"), "shared")[runtime.pid]["state"] == "stopped")
    shown = _rows(ask(git_repo, "status"), "shared")
    assert (shown[tunnel.pid]["state"], shown[tunnel.pid]["verdict"]) == ("running", "KEEP")
    assert shown[tunnel.pid]["reason"] == "tunnel or VPN: only ever shown"
    for command in (("reap",), ("cleanup", "--yes")):
        report = ask(git_repo, *command)
        assert pids(report["removed"]) == set()
    assert tunnel.poll() is None


def test_the_configuration_protects_programs_by_name(
    git_repo: Path, track: Tracker, look_alike: Callable[[str], str]
) -> None:
    (git_repo / "corral.toml").write_text('[protect]\nprograms = ["mydaemon"]\n')
    pid = track.pid(start(git_repo, look_alike("mydaemon"), "-c", STAY))
    taken = track.pid(start(git_repo, look_alike("other"), "-c", STAY))
    report = ask(git_repo, "reap")
    assert taken in pids(report["removed"])
    assert alive(pid)


def test_what_one_worktrees_configuration_protects_is_safe_from_an_end_in_another(
    agent: MakeAgent,
    worktree: Callable[[str], Path],
    track: Tracker,
    look_alike: Callable[[str], str],
) -> None:
    here, there = worktree("here"), worktree("there")
    (there / "corral.toml").write_text('[protect]\nprograms = ["mydaemon"]\n')
    one = agent(cwd=here)
    one.start()
    one.start("compact", cwd=str(there))
    pid = track.pid(one.server(look_alike("mydaemon"), "-c", STAY, cwd=there))
    taken = track.pid(one.server(*SLEEP))
    one.end()
    settle(taken)
    assert alive(pid)


@pytest.mark.parametrize("words", [("cleanup", "--yes"), ("reap", "--session", "s-1")])
def test_what_one_worktrees_configuration_protects_is_safe_from_a_command_in_another(
    agent: MakeAgent,
    worktree: Callable[[str], Path],
    track: Tracker,
    look_alike: Callable[[str], str],
    words: tuple[str, ...],
) -> None:
    here, there = worktree("here"), worktree("there")
    (there / "corral.toml").write_text('[protect]\nprograms = ["mydaemon"]\n')
    one = agent(cwd=there)
    one.start()
    pid = track.pid(one.server(look_alike("mydaemon"), "-c", STAY))
    taken = track.pid(one.server(*SLEEP))
    os.kill(one.pid, signal.SIGKILL)
    eventually(lambda: not alive(one.pid))
    no_grace = {"CORRAL_KEEPER_GRACE": "0"}
    seen = ask(here, "status", env=no_grace)
    assert (taken in pids(seen["orphans"]), pid in pids(seen["orphans"])) == (True, False)
    assert pids(ask(here, *words, env=no_grace)["removed"]) == {taken}
    assert alive(pid)


def test_a_tool_that_only_speaks_of_a_runtime_is_taken_down(git_repo: Path, track: Tracker) -> None:
    pid = track.pid(start(git_repo, *SLEEP, "dockerd", "tmux", "--headless"))
    assert pid in pids(ask(git_repo, "reap")["removed"])


def test_a_program_that_another_state_directorys_worker_started_is_none_of_this_ones(
    git_repo: Path, track: Tracker, look_alike: Callable[[str], str]
) -> None:
    foreign = {**os.environ, "CORRAL_OWNER": "own-0123456789abcdef"}
    waits = [look_alike("tmux"), "-c", "read x"]
    pid = track.spawn(waits, env=foreign, stdin=subprocess.PIPE).pid
    seen = ask(git_repo, "status")
    for group in ("shared", "unknown", "owned", "orphans"):
        assert pid not in _rows(seen, group)
    assert pid in _rows(ask(git_repo, "status", "--all"), "unknown")
