"""Claims and locks beside their rivals, in the same run: portpicker's portserver, and filelock."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from harness import Check, console, private_environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PROCESSES = 50
_CLAIMS = 40  # of each process in one run; fewer than the ports of the pools
_HOLDING = 0.002  # seconds that a lock is held before it is handed over
_POOL = "10000-19999"


class _Handed(NamedTuple):
    """One turn of a lock: by whom, from when to when on the monotonic clock."""

    taken: float
    given: float
    process: int


@contextlib.contextmanager
def _state() -> Iterator[str]:
    """A state directory of this run's own, for this process and those that it forks."""
    with private_environ() as environ:
        before = dict(os.environ)
        os.environ.update(environ)
        try:
            yield environ["CORRAL_STATE_DIR"]
        finally:
            os.environ.clear()
            os.environ.update(before)


def _together(count: int, work: Callable[[int], None], warm: Callable[[], None]) -> float:
    """Seconds from the moment that `count` warm processes start to work until all have ended."""
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    pids = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            os.close(go_write)
            _live(lambda: work(number), warm, ready_write, go_read)  # noqa: B023 (called at once)
        pids.append(pid)
    os.close(go_read)
    os.close(ready_write)
    waiting = count
    while waiting:
        arrived = os.read(ready_read, waiting)
        if not arrived:
            raise RuntimeError("a worker ended before it was ready")
        waiting -= len(arrived)
    begin = time.monotonic()
    os.close(go_write)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    taken = time.monotonic() - begin
    os.close(ready_read)
    if any(statuses):
        raise RuntimeError(f"{sum(map(bool, statuses))} of {count} workers failed")
    return taken


def _live(work: Callable[[], None], warm: Callable[[], None], ready: int, go: int) -> None:
    status = 1
    try:
        warm()
        os.write(ready, b".")
        os.read(go, 1)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()  # os._exit below would swallow it
        raise
    finally:
        os._exit(status)


def _corral_claims() -> float:
    """Ports claimed and held per second by all processes together."""
    import corral

    held: list[corral.EphemeralPort] = []

    def claim(_number: int = 0) -> None:
        held.extend(corral.allocate_ephemeral_port("bench") for _ in range(_CLAIMS))

    def warm() -> None:
        corral.allocate_ephemeral_port("bench").release()

    with _state():
        taken = _together(_PROCESSES, claim, warm)
    return _PROCESSES * _CLAIMS / taken


def _portserver_leases() -> float:
    """New leases per second that portpicker's server grants to all processes together."""
    import portpicker  # type: ignore[import-untyped]

    address = f"@corral-bench-{os.getpid()}-{time.monotonic_ns()}"

    def lease() -> None:
        if not portpicker.get_port_from_port_server(address):
            raise RuntimeError("the portserver has no port left")

    def leases(_number: int) -> None:
        for _ in range(_CLAIMS):
            lease()

    argv = [sys.executable, console("portserver.py"), f"--portserver_static_pool={_POOL}"]
    argv.append(f"--portserver_address={address}")
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(address)
            taken = _together(_PROCESSES, leases, lease)
        finally:
            server.kill()
    return _PROCESSES * _CLAIMS / taken


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 10
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(address.replace("@", "\0", 1))
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return


def claims_against_portserver(rounds: int) -> float:
    """How many ports corral claims in the time in which the portserver grants one lease."""
    figures = [(_corral_claims(), _portserver_leases()) for _ in range(rounds)]
    figure = statistics.median(ours for ours, _ in figures)
    rival = statistics.median(theirs for _, theirs in figures)
    print(f"  claims/s, {_PROCESSES} processes: corral {figure:,.0f}, portserver {rival:,.0f}")
    return statistics.median([ours / theirs for ours, theirs in figures])


def _handovers(turns: int, lock: Callable[[str], Callable[[], Callable[[], None]]]) -> list[float]:
    """Seconds from each release of a lock until another one of two processes has it.

    `lock(path)` makes, within a process, a function that takes it and returns what releases it.
    """
    with tempfile.TemporaryDirectory() as directory, open(f"{directory}/log", "ab") as log:

        def work(number: int) -> None:
            take = lock(f"{directory}/lock")
            for _ in range(turns):
                give = take()
                taken = time.monotonic()
                time.sleep(_HOLDING)
                given = time.monotonic()
                give()
                os.write(log.fileno(), f"{taken} {given} {number}\n".encode())
                time.sleep(_HOLDING / 4)  # let the other one in

        _together(2, work, lambda: None)
        with open(f"{directory}/log") as lines:
            fields = [line.split() for line in lines]
    handed = sorted(_Handed(float(a), float(b), int(c)) for a, b, c in fields)
    return [
        max(0.0, after.taken - before.given)
        for before, after in pairwise(handed)
        if before.process != after.process
    ]


def _corral_lock(path: str) -> Callable[[], Callable[[], None]]:
    import corral

    def take() -> Callable[[], None]:
        mutex = corral.acquire_conductor_mutex(path, blocking=True, scope="machine")
        if mutex is None:
            raise RuntimeError("a blocking acquire came back without the lock")
        return mutex.release

    return take


def _filelock(path: str) -> Callable[[], Callable[[], None]]:
    import filelock

    lock = filelock.FileLock(path)

    def take() -> Callable[[], None]:
        lock.acquire()
        return lock.release

    return take


def handover_against_filelock(rounds: int) -> float:
    """How long a lock is free between two holders that wait for it, as a multiple of filelock."""
    with _state():
        ours = statistics.median(_handovers(rounds, _corral_lock))
        theirs = statistics.median(_handovers(rounds, _filelock))
    print(f"  lock hand-over: corral {ours * 1000:.2f} ms, filelock {theirs * 1000:.2f} ms")
    return ours / theirs


CHECKS = (
    Check(
        "claims/s against portserver",
        claims_against_portserver,
        1.0,
        "x portpicker's portserver",
        floor=True,
        rounds=5,
    ),
    Check("lock hand-over", handover_against_filelock, 2.0, "x filelock", rounds=20),
)
