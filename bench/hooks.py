"""What an agent waits for when its session starts or ends: alone, and twenty at once."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from harness import BARE, Check, console, private_environ, seconds
from seeding import ENVIRONMENTS, record, seed

from corral.store import records
from corral.store.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SESSIONS = 20
_PROCESSES = 10  # that each of them leaves behind
_MORE_RECORDS = 50  # on top of the seeded rows
_PATIENCE = 120.0

# The other half of a hook, also one that was only just forked.
_HOOK = re.compile(r"corral-hook|corral\.cli\.hook")
# Forks, gives up its parent and its terminal, and sleeps: what a session leaves behind.
_LEAVE = """
import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.setsid()
        os.execv("/bin/sleep", ["sleep", "600"])
"""


class _Bench(NamedTuple):
    """A machine in use: variables, a seeded registry, and trees with environments."""

    environ: dict[str, str]
    trees: str

    def payload(self, event: str, session: str, tree: str, **more: str) -> str:
        """A file with what the agent would write to the hook's stdin."""
        fields = {"hook_event_name": event, "session_id": session, "cwd": tree, **more}
        path = os.path.join(self.environ["HOME"], f"{event}-{session}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(fields | {"transcript_path": "/tmp/t.jsonl"}, file)
        return path

    def tree(self, number: int) -> str:
        return os.path.join(self.trees, f"tree-{number % ENVIRONMENTS}")

    def start(self, session: str, tree: str) -> float:
        """Seconds of a starting session's hook."""
        path = self.payload("SessionStart", session, tree, source="startup")
        return seconds(_hook(), self.environ, stdin=path)

    def end(self, session: str, tree: str) -> float:
        """Seconds of an ending session's hook; what it hands over to is waited for, not timed."""
        path = self.payload("SessionEnd", session, tree, reason="other")
        taken = seconds(_hook(), self.environ, stdin=path)
        self.settle()
        return taken

    def settle(self) -> None:
        """Wait until no corral of this bench runs any more."""
        self.wait_for(
            lambda: not any(_HOOK.search(line) for line in self.running()),
            "detached reaps to end",
        )

    def wait_for(self, predicate: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not predicate():
            if time.monotonic() > deadline:
                raise RuntimeError(f"waited {_PATIENCE:g} s for {what}")
            time.sleep(0.05)

    def left(self) -> list[str]:
        """What sessions have left behind."""
        return [line for line in self.running() if line.startswith("sleep")]

    def running(self) -> list[str]:
        """The command line of every process that carries this bench's state directory."""
        wanted = f"CORRAL_STATE_DIR={self.environ['CORRAL_STATE_DIR']}".encode()
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it ended, or is another user's
                with open(f"/proc/{name}/environ", "rb") as file:
                    marked = wanted in file.read().split(b"\0")
                if marked:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        found.append(file.read().replace(b"\0", b" ").decode())
        return found


def _hook() -> list[str]:
    return [console("corral-hook"), "claude"]


@contextlib.contextmanager
def _bench() -> Iterator[_Bench]:
    with private_environ() as environ:
        environ["PATH"] = os.path.dirname(console("corral"))  # no engine's program is to be found
        environ["CLAUDE_ENV_FILE"] = os.path.join(environ["HOME"], "variables")
        trees = os.path.join(environ["HOME"], "trees")
        seed(environ["CORRAL_STATE_DIR"], trees)
        yield _Bench(environ, trees)


def _ratio(taken: Sequence[float], bare: Sequence[float]) -> float:
    return statistics.median(taken) / statistics.median(bare)


def hook_start(rounds: int) -> float:
    """A session that starts in an environment that is up."""
    with _bench() as bench:
        bench.start("warm", bench.tree(0))
        taken, bare = [], []
        for number in range(rounds):
            taken.append(bench.start(f"s{number}", bench.tree(number)))
            bare.append(seconds(BARE, bench.environ))
        return _ratio(taken, bare)


def hook_start_in_a_new_worktree(rounds: int) -> float:
    """A session that starts where nothing is claimed and no file is written yet."""
    with _bench() as bench:
        bench.environ["PATH"] += f":{os.path.dirname(shutil.which('git') or '')}"
        taken, bare = [], []
        for number in range(rounds):
            tree = os.path.join(bench.environ["HOME"], f"new-{number}")
            subprocess.run(["git", "init", "-q", tree], check=True)
            with open(os.path.join(tree, "Procfile"), "w", encoding="utf-8") as file:
                file.write("web: server --port 3000\n")
            taken.append(bench.start(f"s{number}", tree))
            bare.append(seconds(BARE, bench.environ))
        return _ratio(taken, bare)


def hook_end(rounds: int) -> float:
    """A session that ends."""
    with _bench() as bench:
        taken, bare = [], []
        for number in range(rounds):
            bench.start(f"s{number}", bench.tree(number))
            taken.append(bench.end(f"s{number}", bench.tree(number)))
            bare.append(seconds(BARE, bench.environ))
        return _ratio(taken, bare)


def ending_together(rounds: int) -> float:
    """Milliseconds that 99 of 100 hooks stay within, when twenty sessions end at the same moment.

    Each of them has left ten processes, and all of them must be gone in the end.
    """
    taken: list[float] = []
    with _bench() as bench:
        _record_more(bench.environ)
        for number in range(rounds):
            taken += _end_together(bench, f"round{number}")
    taken.sort()
    return taken[min(len(taken) - 1, len(taken) * 99 // 100)] * 1000


def _end_together(bench: _Bench, name: str) -> list[float]:
    sessions = [f"{name}-{number}" for number in range(_SESSIONS)]
    payloads = []
    for number, session in enumerate(sessions):
        bench.start(session, bench.tree(number))
        payloads.append(bench.payload("SessionEnd", session, bench.tree(number), reason="other"))
    owners = _owners(bench, sessions)
    for owner in owners:
        environ = {**bench.environ, "CORRAL_OWNER": owner}
        subprocess.run([sys.executable, "-c", _LEAVE, str(_PROCESSES)], env=environ, check=True)
    bench.wait_for(lambda: len(bench.left()) == _SESSIONS * _PROCESSES, "processes to be there")
    taken = _at_once(payloads, bench.environ)
    bench.settle()
    if bench.left():
        raise RuntimeError(f"{len(bench.left())} processes outlived their sessions")
    return taken


def _at_once(payloads: Sequence[str], environ: Mapping[str, str]) -> list[float]:
    """Seconds that each of the hooks took from its own spawn, all spawned in a row."""
    begun: dict[int, float] = {}
    taken = []
    for path in payloads:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        now = time.perf_counter()
        # Each agent runs in a session of its own, so its hooks have a share of a processor.
        pid = os.posix_spawn(_hook()[0], _hook(), environ, file_actions=actions, setsid=True)
        begun[pid] = now
    while begun:
        pid, status = os.wait()
        taken.append(time.perf_counter() - begun.pop(pid))
        if status:
            raise RuntimeError(f"a hook exited with {os.waitstatus_to_exitcode(status)}")
    return taken


def _owners(bench: _Bench, sessions: Sequence[str]) -> list[str]:
    done = subprocess.run(
        [console("corral"), "session", "list", "--json"],
        env=bench.environ,
        stdout=subprocess.PIPE,
        check=True,
    )
    known = json.loads(done.stdout)["data"]["sessions"]
    return [row["owner"] for row in known if set(row["sessions"]) & set(sessions)]


def _record_more(environ: Mapping[str, str]) -> None:
    """More rows that every look has to read: of processes that are gone."""
    with (
        Registry.open(environ["CORRAL_STATE_DIR"]) as registry,
        registry.write() as conn,
    ):
        for number in range(_MORE_RECORDS):
            owner = f"{number % ENVIRONMENTS:012x}"
            records.insert(conn, record(owner, f"more-{number}", time.time()))


CHECKS = (
    Check("hook start", hook_start, 4.5),
    Check("hook start in a new worktree", hook_start_in_a_new_worktree, 9.0, rounds=11),
    Check("hook end", hook_end, 4.5),
    Check("20 sessions ending at once, p99", ending_together, 300.0, "ms", rounds=3),
)
