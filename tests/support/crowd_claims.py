"""Campaign: many processes claim and release ports while they are killed at random.

`python -m support.crowd_claims DIRECTORY COUNT SECONDS`. Says how many were killed, and what was
found in the end: ports that two had, claims of living processes that were lost or made up, whether
the registry is sound, and how long the next claim took.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import corral
from support.crowd import Crowd, say
from support.waiting import eventually

if TYPE_CHECKING:
    from types import FrameType

_POOL = (23100, 23399)  # so few that those of the dead have to be reclaimed
_MOST = 6


class _Claimer:
    """One worker. `twice` notes each port that it was given while another one had it."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._held: list[corral.PortRun] = []
        self._over = False
        # Descriptor 0 is the first that a killed process loses: its witness goes before its claim.
        os.dup2(os.open(f"{directory}/witness", os.O_RDWR | os.O_CREAT), 0)
        signal.signal(signal.SIGUSR1, self._end)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})

    def run(self) -> None:
        while not self._over:
            if len(self._held) < _MOST and random.random() < 0.6:
                with contextlib.suppress(corral.HeldError):  # the pool is full for a moment
                    self._take()
            elif self._held:
                self._give()
        ports = [port for run in self._held for port in run.ports]
        draft = f"{self._directory}/draft-{os.getpid()}"
        Path(draft).write_text(json.dumps(ports))
        os.replace(draft, f"{self._directory}/held-{os.getpid()}")
        while True:
            signal.pause()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._over = True

    def _take(self) -> None:
        run = corral.allocate_port_run(random.choice((1, 1, 3)), "crowd", pool=_POOL)
        for port in run.ports:
            try:
                fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            except BlockingIOError:
                Path(f"{self._directory}/twice-{port}").touch()
        self._held.append(run)

    def _give(self) -> None:
        run = self._held.pop(random.randrange(len(self._held)))
        for port in run.ports:
            fcntl.lockf(0, fcntl.LOCK_UN, 1, port)
        run.release()


def _reported(directory: str, pids: list[int]) -> dict[int, list[int]]:
    """The ports that each living worker says it has."""
    for pid in pids:
        os.kill(pid, signal.SIGUSR1)
    found = {}
    for pid in pids:
        path = Path(f"{directory}/held-{pid}")
        eventually(path.exists, 60)
        found[pid] = json.loads(path.read_text())
    return found


def _verdict(directory: str, crowd: Crowd) -> dict[str, Any]:
    reported = _reported(directory, crowd.pids)
    claimed: dict[int, list[int]] = {pid: [] for pid in reported}
    for row in corral.list_allocations("crowd"):
        if row.holder.pid in claimed:
            claimed[row.holder.pid].append(row.port)
    everything = [port for ports in reported.values() for port in ports]
    return {
        "killed": crowd.killed,
        "held": len(everything),
        "twice": len(everything) - len(set(everything)) + len(list(Path(directory).glob("twice*"))),
        "lost": sum(len(set(reported[p]) - set(claimed[p])) for p in reported),
        "made_up": sum(len(set(claimed[p]) - set(reported[p])) for p in reported),
    }


def _sound() -> str:
    with contextlib.closing(
        sqlite3.connect(f"{os.environ['CORRAL_STATE_DIR']}/registry.sqlite3")
    ) as conn:
        return str(conn.execute("PRAGMA integrity_check").fetchone()[0])


def main() -> None:
    """Run the campaign."""
    directory, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # it waits until a worker is ready
    with Crowd(lambda _number: _Claimer(directory).run(), count) as crowd:
        crowd.harass(seconds, pause=0.01)
        seen = _verdict(directory, crowd)
    begin = time.monotonic()
    corral.allocate_ephemeral_port("next").release()
    seen["next_claim"] = time.monotonic() - begin
    corral.reap_stale_allocations()
    say({**seen, "left": len(corral.list_allocations()), "integrity": _sound()})


if __name__ == "__main__":
    main()
