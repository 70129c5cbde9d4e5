"""Fair figures: two things timed in turn in the same run, and the ratio of their medians.

A figure is never a time alone: it is a multiple of a bare `python -c pass` of the same virtual
environment, or of a rival that is measured beside it, so that it means the same on any machine.
"""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SOURCE = Path(__file__).parents[1] / "src"
BARE = (sys.executable, "-c", "pass")
_FOREIGN = ("CLAUDE", "CODEX", "CORRAL_", "DOCKER_", "GIT_", "GITHUB_", "PYTHON", "XDG_")


class Check(NamedTuple):
    """One figure with its budget.

    `measure(rounds)` yields the figure in `unit`; it must not exceed `limit`, or with `floor` must
    not fall below it. `rounds` is what a quick run uses; a thorough one takes five times as many.
    """

    name: str
    measure: Callable[[int], float]
    limit: float
    unit: str = "x bare python"
    floor: bool = False
    rounds: int = 21

    def keeps(self, figure: float) -> bool:
        """Whether a figure stays within the budget."""
        return figure >= self.limit if self.floor else figure <= self.limit


def seconds(
    argv: Sequence[str], environ: Mapping[str, str], *, expect: int = 0, stdin: str = os.devnull
) -> float:
    """Wall-clock seconds from the spawn of one process to its end, output thrown away.

    It reads the file `stdin`.

    Raises RuntimeError when it exits with another status than `expect`.
    """
    null = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (1, 2)),
    ]
    start = time.perf_counter()
    pid = os.posix_spawn(argv[0], list(argv), environ, file_actions=null)
    _, status = os.waitpid(pid, 0)
    taken = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != expect:
        raise RuntimeError(f"{' '.join(argv)} exited with {os.waitstatus_to_exitcode(status)}")
    return taken


def times(
    subjects: Sequence[Sequence[str]], environ: Mapping[str, str], rounds: int
) -> list[list[float]]:
    """Seconds of each subject in each round; the subjects take turns within a round."""
    for subject in subjects:
        seconds(subject, environ)  # warm the caches
    taken: list[list[float]] = [[] for _ in subjects]
    for number in range(rounds):
        order = range(len(subjects))
        for index in order if number % 2 else reversed(order):
            taken[index].append(seconds(subjects[index], environ))
    return taken


def against_bare(argv: Sequence[str], environ: Mapping[str, str], rounds: int) -> float:
    """How many times a bare interpreter's whole life the whole life of `argv` takes."""
    subject, bare = times([argv, BARE], environ, rounds)
    return statistics.median(subject) / statistics.median(bare)


def console(name: str) -> str:
    """The installed console script beside this interpreter."""
    return str(Path(sys.executable).parent / name)


@contextlib.contextmanager
def private_environ() -> Iterator[dict[str, str]]:
    """Variables for subjects: a HOME and state directory of their own, no inherited identity."""
    root = tempfile.mkdtemp(prefix="corral-bench-")
    environ = {name: text for name, text in os.environ.items() if not name.startswith(_FOREIGN)}
    environ |= {"HOME": root, "CORRAL_STATE_DIR": os.path.join(root, "state"), "LC_ALL": "C.UTF-8"}
    try:
        yield environ
    finally:
        shutil.rmtree(root)


def compile_source() -> None:
    """Write byte code as an installation would, also under PYTHONDONTWRITEBYTECODE."""
    compileall.compile_dir(str(SOURCE), quiet=1)
