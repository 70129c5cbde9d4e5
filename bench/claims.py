"""Fifty processes claim and release at once: the registry beside a JSON file behind a flock.

The rival is what one writes first: a lock file, `json`, a temporary file that is synced and
renamed, its directory synced. So both are as durable (a claim is on disk when it is had), and both
keep the same values. A file is read and written whole for every claim, so the more is in it, the
slower it is: the budget is about a registry with what fifty workers have, and run by itself this
also shows the two with nothing else in them. The rest is the disk: the registry syncs once for a
claim, the file three times.
"""

from __future__ import annotations

import fcntl
import json
import os
import statistics
import struct
import time
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from harness import Check, private_environ

from corral.model.environment import Claim, ClaimKind, Environment, Place
from corral.model.owner import Epoch, Owner
from corral.model.process import ProcessIdentity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.store import claims, environments, owners, records
from corral.store.encoding import process_pairs
from corral.store.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

    Turn = Callable[[bool], None]

_PROCESSES = 50
_SECONDS = 2.0  # of each crowd
_WORKERS = 50  # each with an environment, eight claims, an owner with an epoch, three services
_RESULT = struct.Struct("=Qd")


class Crowd(NamedTuple):
    """What many processes did in the same seconds: turns of each, and the longest of all."""

    turns: tuple[int, ...]
    longest: float

    @property
    def rate(self) -> float:
        """Claims and releases per second, of all together."""
        return sum(self.turns) / _SECONDS

    @property
    def fairness(self) -> float:
        """The slowest process's turns as a part of the fastest one's."""
        return min(self.turns) / max(self.turns)


def _crowd(make: Callable[[int], Turn]) -> Crowd:
    """Let every process make its turn ready, then all of them take turns for some seconds."""
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    result_read, result_write = os.pipe()
    pids = []
    for number in range(_PROCESSES):
        pid = os.fork()
        if not pid:
            os.close(go_write)
            _work(make, number, ready_write, go_read, result_write)
        pids.append(pid)
    waiting = _PROCESSES
    while waiting:
        waiting -= len(os.read(ready_read, waiting))
    os.close(go_write)
    for pid in pids:
        if os.waitpid(pid, 0)[1]:
            raise RuntimeError("a process of the crowd failed")
    results = list(_RESULT.iter_unpack(os.read(result_read, _RESULT.size * _PROCESSES)))
    for fd in (ready_read, ready_write, go_read, result_read, result_write):
        os.close(fd)
    return Crowd(tuple(turns for turns, _ in results), max(longest for _, longest in results))


def _work(make: Callable[[int], Turn], number: int, ready: int, go: int, result: int) -> None:
    status = 1
    try:
        turn = make(number)
        os.write(ready, b".")
        os.read(go, 1)
        count, longest = 0, 0.0
        now = time.monotonic()
        end = now + _SECONDS
        while now < end:
            turn(count % 2 == 0)
            count, before, now = count + 1, now, time.monotonic()
            longest = max(longest, now - before)
        os.write(result, _RESULT.pack(count, longest))
        status = 0
    finally:
        os._exit(status)


class Standing(NamedTuple):
    """What is in the registry already: of other workers than those that take turns."""

    environments: list[Environment]
    claims: list[Claim]
    owners: list[Owner]
    records: list[Record]


def _claim(number: int, value: int) -> Claim:
    return Claim(
        ClaimKind.PORT, "tcp", str(value), f"port-{value}", f"env-{number}", None, "own", 1.0
    )


def _standing(workers: int) -> Standing:
    found = Standing([], [], [], [])
    for number in range(workers):
        path, owner = f"/home/somebody/trees/feature-{number}", f"own-{number:016x}"
        process = ProcessIdentity(70_000 + number, 123_456_789, "b" * 36, 4026531836, 98_765)
        place = Place(
            path, "git", f"{path}/.git", f"{path}/c", f"{path}/m", "repo", "tree", False, 2049, 7
        )
        found.environments.append(Environment(f"env-{number}", place, "n" * 32, 1.0))
        found.claims.extend(_claim(number, 25_000 + number * 8 + part) for part in range(8))
        epoch = Epoch(0, owner, f"env-{number}", "claude", 1.0, "b" * 36, process, None, "", None)
        found.owners.append(Owner(owner, None, None, 1.0, (f"session-{number}",), (epoch,)))
        found.records.extend(
            Record(
                f"rec-{number}-{part}",
                Kind.PROCESS,
                "process",
                "service",
                f"service-{part}",
                owner,
                f"session-{number}",
                f"env-{number}",
                RecordState.LIVE,
                process_pairs(process),
                process,
                1.0,
                '{"command": ["npm", "run", "dev"], "log": "/home/somebody/.local/state/corral/x"}',
            )
            for part in range(3)
        )
    return found


def _corral(state_dir: str, standing: Standing) -> Crowd:
    def make(number: int) -> Turn:
        registry, mine = Registry.open(state_dir), _claim(number, 20_000 + number)

        def turn(take: bool) -> None:  # noqa: FBT001 (called with nothing else)
            with registry.write() as conn:
                if take:
                    done = claims.take(conn, mine)
                else:
                    done = claims.release(
                        conn, mine.kind, mine.scope, mine.value, environment=mine.environment
                    )
            if not done:
                raise RuntimeError(f"{mine.value} was somebody else's")

        return turn

    with Registry.open(state_dir) as registry, registry.write() as conn:
        _fill(conn, standing)
    return _crowd(make)


def _fill(conn: Connection, standing: Standing) -> None:
    for environment in standing.environments:
        environments.insert(conn, environment)
    for claim in standing.claims:
        claims.take(conn, claim)
    for record in standing.records:
        records.insert(conn, record)
    for owner in standing.owners:
        owners.mint(conn, owner.id, implicit_of=None, parent=None, now=1.0)
        owners.alias(conn, owner.sessions[0], owner.id, "claude", 1.0)
        epoch = owner.epochs[0]
        owners.open_epoch(
            conn,
            owner=owner.id,
            environment=epoch.environment,
            agent=epoch.agent,
            boot_id=epoch.boot_id,
            anchor=epoch.anchor,
            now=epoch.opened_at,
        )


def _json(directory: str, standing: Standing) -> Crowd:
    path = os.path.join(directory, "registry.json")

    def make(number: int) -> Turn:
        lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT)
        mine = _claim(number, 20_000 + number)
        row, key = _plain(mine), f"{mine.kind.value}/{mine.scope}/{mine.value}"

        def turn(take: bool) -> None:  # noqa: FBT001 (called with nothing else)
            fcntl.flock(lock, fcntl.LOCK_EX)
            with open(path, "rb") as file:
                registry = json.loads(file.read())
            held = registry["claims"]
            if (key in held) is take:
                raise RuntimeError(f"{key} was somebody else's")
            if take:
                held[key] = row
            else:
                del held[key]
            _replace(directory, path, json.dumps(registry).encode())
            fcntl.flock(lock, fcntl.LOCK_UN)

        return turn

    os.makedirs(directory)
    registry = {
        "claims": {f"{c.kind.value}/{c.scope}/{c.value}": _plain(c) for c in standing.claims},
        "environments": {e.id: _plain(e) for e in standing.environments},
        "owners": {o.id: _plain(o) for o in standing.owners},
        "records": {r.id: _plain(r) for r in standing.records},
    }
    _replace(directory, path, json.dumps(registry).encode())
    return _crowd(make)


def _plain(value: object) -> object:
    """A value as JSON has it: the fields of a tuple by name, the word of an enum."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        plain = [_plain(part) for part in value]
        return plain if fields is None else dict(zip(fields, plain, strict=True))
    return value


def _replace(directory: str, path: str, content: bytes) -> None:
    with open(path + ".new", "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    fd = os.open(directory, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _pair(workers: int) -> tuple[Crowd, Crowd]:
    """Both in the same run, each with a directory of its own on the same disk."""
    standing = _standing(workers)
    with private_environ() as environ:
        state_dir = environ["CORRAL_STATE_DIR"]
        theirs = _json(state_dir + ".json", standing)
        ours = _corral(state_dir, standing)
    print(
        f"  beside {workers} workers, {_PROCESSES} processes, turns/s: "
        f"corral {ours.rate:,.0f} (slowest/fastest {ours.fairness:.2f}, longest "
        f"{ours.longest * 1000:.0f} ms), JSON file {theirs.rate:,.0f} "
        f"({theirs.fairness:.2f}, {theirs.longest * 1000:.0f} ms)",
        flush=True,
    )
    return ours, theirs


def against_json(rounds: int) -> float:
    """How many claims and releases the registry does while the JSON file does one."""
    pairs = [_pair(_WORKERS) for _ in range(rounds)]
    return statistics.median(ours.rate / theirs.rate for ours, theirs in pairs)


def fairness(rounds: int) -> float:
    """The slowest process's turns as a part of the fastest one's; the worst round counts."""
    crowds, standing = [], _standing(_WORKERS)
    for _ in range(rounds):
        with private_environ() as environ:
            crowds.append(_corral(environ["CORRAL_STATE_DIR"], standing))
    return min(crowd.fairness for crowd in crowds)


CHECKS = (
    Check(
        "claims/s against a JSON file", against_json, 10.0, "x flock + JSON", floor=True, rounds=3
    ),
    Check("fairness of claims", fairness, 0.1, "slowest/fastest", floor=True, rounds=1),
)


if __name__ == "__main__":
    for others in (0, _WORKERS):
        mine, rival = _pair(others)
        print(f"  ratio {mine.rate / rival.rate:.1f}, fairness {mine.fairness:.2f}")
