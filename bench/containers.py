"""Containers on a private Docker daemon: looking at many, and taking many down.

Rivals are timed in the same run: the docker program itself, and the Docker SDK for Python.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness import BARE, Check, console, private_environ, seconds, times
from seeding import seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.dockerd import Dockerd

# The daemon is the one that the tests start.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

_SDK = "import docker; docker.from_env().containers.list(all=True, sparse=True)"
_STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
_POLITE = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
_MANY, _TWENTY, _FEW = 50, 20, 4


@contextlib.contextmanager
def _engine() -> Iterator[tuple[Dockerd, dict[str, str]]]:
    """A daemon of its own, and variables that lead to it and to a seeded registry."""
    from support.dockerd import Dockerd

    daemon = Dockerd()
    with private_environ() as environ:
        environ["DOCKER_HOST"] = daemon.host
        seed(environ["CORRAL_STATE_DIR"], os.path.join(environ["HOME"], "trees"))
        try:
            yield daemon.start(), environ
        finally:
            daemon.clear()
            daemon.stop()


def _start(daemon: Dockerd, count: int) -> list[str]:
    """Containers of one session without data, every other one deaf to TERM; their full ids."""
    label = ("--label", "corral.session=session-0")

    def one(number: int) -> str:
        return daemon.container(*label, command=_STUBBORN if number % 2 else _POLITE)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, range(count)))


def _status(environ: Mapping[str, str]) -> list[str]:
    return [console("corral"), "status", "--env", os.path.join(environ["HOME"], "trees", "tree-0")]


def _reap(daemon: Dockerd, environ: Mapping[str, str], count: int) -> float:
    """Seconds in which `corral reap` takes `count` containers down."""
    _start(daemon, count)
    # a stranger to the session, whose anchor is the seeding process: hence --force
    argv = [console("corral"), "reap", "--session", "session-0", "--force"]
    taken = seconds([*argv, "--env", os.path.join(environ["HOME"], "trees", "tree-0")], environ)
    if daemon.ids():
        raise RuntimeError("corral reap left containers behind")
    return taken


def _docker(daemon: Dockerd, *arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run(["docker", *arguments], env=daemon.env, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def status_of_many(rounds: int) -> float:
    """`corral status` with 50 containers, in lives of a bare interpreter."""
    with _engine() as (daemon, environ):
        _start(daemon, _MANY)
        ours, bare = times([_status(environ), BARE], environ, rounds)
        return median(ours) / median(bare)


def status_against_sdk(rounds: int) -> float:
    """`corral status` with 50 containers against a bare listing of them by the Docker SDK."""
    with _engine() as (daemon, environ):
        _start(daemon, _MANY)
        ours, theirs = times([_status(environ), [BARE[0], "-c", _SDK]], environ, rounds)
        return median(ours) / median(theirs)


def reap_against_force(rounds: int) -> float:
    """`corral reap` of 20 containers against one `docker rm -f -v` of all their ids."""
    with _engine() as (daemon, environ):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(_reap(daemon, environ, _TWENTY))
            theirs.append(_docker(daemon, "rm", "-f", "-v", *_start(daemon, _TWENTY)))
    print(f"  {_TWENTY} containers: corral {median(ours):.2f} s, docker {median(theirs):.2f} s")
    return median(ours) / median(theirs)


def one_by_one_against_reap(rounds: int) -> float:
    """`docker stop` and `docker rm` one by one against `corral reap`, of 4 containers."""
    with _engine() as (daemon, environ):
        ours, theirs = [], []
        for _ in range(rounds):
            ours.append(_reap(daemon, environ, _FEW))
            ids = _start(daemon, _FEW)
            theirs.append(
                sum(_docker(daemon, "stop", i) + _docker(daemon, "rm", "-v", i) for i in ids)
            )
    return median(theirs) / median(ours)


def _checks() -> tuple[Check, ...]:
    """No checks where there is no engine, unless this machine must have one."""
    from support.engines import why_not

    reason = why_not("docker")
    if reason and "docker" not in os.environ.get("CORRAL_REQUIRE_ENGINES", "").split(","):
        print(f"containers are not measured: {reason}")
        return ()
    return (
        Check("corral status, 50 containers", status_of_many, 8.0),
        Check("corral status, 50 containers, SDK", status_against_sdk, 0.6, "x listing by SDK"),
        Check("reap 20 containers", reap_against_force, 1.3, "x docker rm -f -v", rounds=3),
        Check(
            "reap 4 containers",
            one_by_one_against_reap,
            10.0,
            "x faster than one by one",
            floor=True,
            rounds=1,
        ),
    )


CHECKS = _checks()
