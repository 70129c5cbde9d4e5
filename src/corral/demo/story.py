"""What `corral demo` shows: two worktrees side by side, a crash, and nothing left at the end.

Everything is real: git worktrees, servers, databases, a killed worker. It happens in a temporary
directory with a state directory of its own, so it meets nobody's work.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import urllib.request

from corral.backends._command import run as run_program
from corral.errors import RunError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

CONFIGURATION = """\
[ports]
web = 3000

[database]
isolation = "file"

[keeper]
grace = 1
"""
CHAPTERS = 5
_INTRODUCTION = """\
Two worktrees of one small web application, worked on at the same time. Everything is real (git,
servers, databases, a killed worker) and happens in {root}, shown as ~,
with registry and files of its own. A line with "$" is a command as you would type it, in the
worktree before it; "ok" is something that was checked, and the demonstration ends where one fails.
"""
_LIMIT = 60.0
_READY = "15"


class Stage:
    """The temporary directory, the two worktrees, and how commands are run and checked there."""

    def __init__(self, root: str, say: Callable[[str], None]) -> None:
        self.root = root
        self.say = say
        self.main = os.path.join(root, "board")
        self.feature = os.path.join(root, "board-feature")
        self.state_dir = os.path.join(root, "state")
        self.environ = _clean_environ(root, self.state_dir)
        self.chapter = 0

    def tell(self, text: str, why: str) -> None:
        """A chapter of the story: what comes now, and why it matters."""
        self.chapter += 1
        self.say(f"\n--- {self.chapter} of {CHAPTERS}: {text}\n    {why}\n\n")

    def shown(self, text: str) -> str:
        """The text with the temporary directory, which is the home of this story, as `~`."""
        return text.replace(self.root, "~").replace(sys.executable, "python3")

    def corral(self, where: str, *words: str, extra: Mapping[str, str] | None = None) -> str:
        """Run corral as a person would, show the command and what it says, return its stdout."""
        self.say(self.shown(f"{os.path.basename(where)} $ corral {' '.join(words)}\n"))
        output = self._run([sys.executable, "-m", "corral.cli.main", *words], where, extra)
        self.say("".join(f"    {line}\n" for line in self.shown(output).splitlines()))
        return output

    def ask(self, where: str, *words: str) -> dict[str, Any]:
        """Run corral with --json, quietly, and return its data."""
        argv = [sys.executable, "-m", "corral.cli.main", *words, "--json"]
        document: dict[str, Any] = json.loads(self._run(argv, where, None))
        data: dict[str, Any] = document["data"]
        return data

    def git(self, where: str, *words: str) -> str:
        """Run git."""
        return self._run(["git", *words], where, None)

    def _run(self, argv: list[str], where: str, extra: Mapping[str, str] | None) -> str:
        done = run_program(argv, timeout=_LIMIT, env={**self.environ, **(extra or {})}, cwd=where)
        if done.returncode != 0:
            raise RunError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def check(self, what: str, *, holds: bool) -> None:
        """One thing that must hold; the demonstration fails where it does not."""
        if not holds:
            raise RunError(f"the demonstration failed: {what}")
        self.say(f"ok  {what}\n")


def _clean_environ(root: str, state_dir: str) -> dict[str, str]:
    """The caller's variables without any that name a worker, a repository or a configuration."""
    unwanted = ("CORRAL_", "GIT_", "CLAUDE", "CODEX", "GITHUB_", "CI_", "BUILDKITE_", "XDG_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
    environ |= {
        "HOME": root,
        "CORRAL_STATE_DIR": state_dir,
        "GIT_AUTHOR_NAME": "demo",
        "GIT_AUTHOR_EMAIL": "demo@localhost",
        "GIT_COMMITTER_NAME": "demo",
        "GIT_COMMITTER_EMAIL": "demo@localhost",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return environ


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def read_board(port: int) -> dict[str, Any]:
    """What a board answers."""
    with urllib.request.urlopen(_url(port), timeout=5) as answer:  # noqa: S310 - loopback only
        board: dict[str, Any] = json.load(answer)
        return board


def write_note(port: int, text: str) -> None:
    """Add a note to a board."""
    request = urllib.request.Request(_url(port), data=text.encode())  # noqa: S310 - as above
    urllib.request.urlopen(request, timeout=5).close()  # noqa: S310 - as above


def answers(port: int) -> bool:
    """Whether anybody answers on a port."""
    try:
        read_board(port)
    except OSError:
        # Nobody listens there.
        return False
    return True


def processes_below(root: str) -> list[int]:
    """The pids of processes whose working directory lies below `root`; [] where that is not told.

    The kernel's own account, without corral's.
    """
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            directory = os.readlink(f"/proc/{name}/cwd") if name.isdigit() else ""
        except OSError:
            # It ended, or belongs to another user.
            continue
        if f"{directory}/".startswith(f"{root}/"):
            found.append(int(name))
    return found


def tell_story(say: Callable[[str], None]) -> None:
    """The whole demonstration; RunError when anything does not hold."""
    root = os.path.realpath(tempfile.mkdtemp(prefix="corral-demo-"))
    stage = Stage(root, say)
    say(_INTRODUCTION.format(root=root))
    try:
        _prepare(stage)
        ports = _side_by_side(stage)
        _first_ends(stage, ports)
        _a_crash(stage)
        _nothing_left(stage, ports)
    finally:
        _leave(stage)
        shutil.rmtree(root)
    say(f"ok  {root} is removed\n")


def _prepare(stage: Stage) -> None:
    os.makedirs(stage.main)
    shutil.copy(os.path.join(os.path.dirname(__file__), "app.py"), stage.main)
    with open(os.path.join(stage.main, "corral.toml"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)
    stage.git(stage.main, "init", "-q", "-b", "main")
    stage.git(stage.main, "add", ".")
    stage.git(stage.main, "commit", "-q", "-m", "A board for notes")
    stage.git(stage.main, "worktree", "add", "-q", "-b", "feature", stage.feature)


def _side_by_side(stage: Stage) -> tuple[int, int]:
    stage.tell(
        "corral up gives each worktree ports, a database and an env file of its own",
        "Both want port 3000; two servers on one port or one database would break each other.",
    )
    numbers = []
    for where in (stage.main, stage.feature):
        stage.corral(where, "up")
        numbers.append(int(stage.ask(where, "status")["environment"]["ports"]["web"]))
    stage.corral(stage.feature, "env")
    first, second = numbers
    stage.check("the two have different ports", holds=first != second)
    stage.tell(
        "corral run starts both servers, and records them first",
        "What is recorded before it runs can be taken down later without any guess.",
    )
    command = ("run", "--detach", "--name", "web", "--wait-ready", _READY, "--", sys.executable)
    for where in (stage.main, stage.feature):
        stage.corral(where, *command, "app.py")
    write_note(first, "written in main")
    write_note(second, "written in feature")
    one, two = read_board(first), read_board(second)
    for port, board in ((first, one), (second, two)):
        stage.say(f"GET {_url(port)}\n    {board['board']}: {', '.join(board['notes'])}\n")
    apart = one["notes"] == ["written in main"] and two["notes"] == ["written in feature"]
    stage.check("both answer, and neither sees the other's data", holds=apart)
    stage.corral(stage.feature, "status")
    return first, second


def _first_ends(stage: Stage, ports: tuple[int, int]) -> None:
    stage.tell(
        "The first worker is done, and corral reap takes down what it started",
        "Exactly that: the other worker's server, the same program, is none of its business.",
    )
    stage.corral(stage.main, "reap")
    stage.check("the first server is gone", holds=not answers(ports[0]))
    stage.check("the second one keeps answering", holds=answers(ports[1]))


def _a_crash(stage: Stage) -> None:
    stage.tell(
        "A worker crashes (SIGKILL) and leaves a server behind",
        "It can say nothing any more. Its server is an orphan: its worker is proven over.",
    )
    worker = os.posix_spawn(
        sys.executable, [sys.executable, "-c", "import signal; signal.pause()"], os.environ
    )
    try:
        stage.corral(
            stage.main, "session", "start", "--session", "agent-7", "--anchor", str(worker)
        )
        stage.corral(
            stage.main,
            "run",
            "--session",
            "agent-7",
            "--detach",
            "--name",
            "orphan",
            "--wait-ready",
            _READY,
            "--",
            sys.executable,
            "app.py",
        )
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
    orphans = _wait_for_orphans(stage)
    stage.check("status shows the orphan", holds=len(orphans) > 0)
    stage.corral(stage.main, "cleanup", "--dry-run")
    stage.corral(stage.main, "cleanup", "--yes")
    left = stage.ask(stage.main, "status")["orphans"]
    stage.check("the orphan is gone", holds=left == [])
    stage.corral(stage.main, "events")


def _wait_for_orphans(stage: Stage) -> list[dict[str, Any]]:
    """The orphans, once the grace of one second has run out."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        orphans: list[dict[str, Any]] = stage.ask(stage.main, "status")["orphans"]
        if orphans:
            return orphans
        time.sleep(0.2)
    return []


def _nothing_left(stage: Stage, ports: tuple[int, int]) -> None:
    stage.tell(
        "corral down gives both environments up",
        "Nothing may be left: no process, no claimed port, no file.",
    )
    for where in (stage.feature, stage.main):
        stage.corral(where, "down")
    stage.check("nobody answers any more", holds=not any(answers(port) for port in ports))
    for where in (stage.main, stage.feature):
        seen = stage.ask(where, "status")
        rows = [*seen["owned"], *seen["orphans"], *seen["unknown"]]
        stage.check(f"nothing runs for {os.path.basename(where)}", holds=rows == [])
        claimed = stage.ask(where, "port", "list")["ports"]
        stage.check(f"no port is claimed for {os.path.basename(where)}", holds=claimed == [])
        dirty = stage.git(where, "status", "--porcelain", "--ignored")
        stage.check(f"no file is left in {os.path.basename(where)}", holds=dirty == "")
    kept = os.path.join(stage.state_dir, "environments")
    empty = not os.path.isdir(kept) or os.listdir(kept) == []
    stage.check("no file is left in the state directory", holds=empty)
    stage.check("no process of the demonstration is left", holds=processes_below(stage.root) == [])


def _leave(stage: Stage) -> None:
    """Take down whatever a failed demonstration left, before its directory goes."""
    for where in (stage.main, stage.feature):
        if os.path.isdir(where):
            run_program(
                [sys.executable, "-m", "corral.cli.main", "down", "--yes", "--force"],
                timeout=_LIMIT,
                env=stage.environ,
                cwd=where,
            )
