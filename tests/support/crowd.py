"""Many processes doing the same at once, and someone who kills them: for campaigns.

Run in a process of its own, which it fills with children: a campaign is a program that is given to
`python -m`, says one JSON value when it is over, and leaves no process behind.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_TESTS = Path(__file__).parents[1]


def campaign(module: str, *words: object, timeout: float = 120) -> Any:
    """Run `python -m support.MODULE WORDS` and return what it said; its errors go to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", f"support.{module}", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        stdout=subprocess.PIPE,
        timeout=timeout,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def say(value: object) -> None:
    """What a campaign ends with."""
    print(json.dumps(value), flush=True)


class Crowd:
    """`count` forked children that each do `work(number)`, in a process group of their own."""

    def __init__(self, work: Callable[[int], None], count: int) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._work = work
        self._started = 0
        self._group = 0
        self.pids: list[int] = []
        self.killed = 0
        for _ in range(count):
            self.add()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def add(self) -> None:
        """One more child."""
        number, self._started = self._started, self._started + 1
        pid = os.fork()
        if not pid:
            _live(self._work, number, self._group)
        self._group = self._group or pid
        os.setpgid(pid, self._group)
        self.pids.append(pid)

    def kill_one(self) -> None:
        """SIGKILL one of the children, and start another one in its place.

        The first one is spared: the group is named after it.
        """
        pid = random.choice(self.pids[1:])
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        self.pids.remove(pid)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise RuntimeError(f"a child ended by itself with {os.WEXITSTATUS(status)}")
        self.killed += 1
        self.add()

    def harass(self, seconds: float, pause: float) -> None:
        """Kill one at a time, `pause` seconds on average between two, for `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(random.uniform(0, 2 * pause))
            self.kill_one()

    def wait(self) -> list[int]:
        """The exit statuses of all children, once each has ended by itself; they forked nothing."""
        statuses = []
        while self.pids:
            statuses.append(os.waitpid(self.pids.pop(), 0)[1])
        self._group = 0
        return statuses

    def end(self) -> None:
        """Kill all children and all that they forked."""
        self._end_group()
        while self.pids:
            os.waitpid(self.pids.pop(), 0)

    def _end_group(self) -> None:
        if not self._group:
            return
        try:
            os.killpg(self._group, signal.SIGKILL)
        except ProcessLookupError:
            # The whole group has ended.
            return


def _live(work: Callable[[int], None], number: int, group: int) -> None:
    status = 1
    try:
        os.setpgid(0, group)
        random.seed()
        work(number)
        status = 0
    except BaseException:
        traceback.print_exc()  # os._exit swallows it
        raise
    finally:
        os._exit(status)
