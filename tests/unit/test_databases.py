"""How database servers are asked to end, and in which order with what stands around them."""

from __future__ import annotations

import pytest

from corral.decide.database_urls import without_password
from corral.decide.databases import part
from corral.model.process import ProcessRow
from corral.model.resource import Judgement, Kind, Sighting, Verdict


def _target(pid: int, *above: int) -> Judgement:
    identity = (("pid", pid), ("start_ticks", 7), ("boot_id", "b"), ("pid_namespace", 1))
    sighting = Sighting(
        Kind.PROCESS, str(pid), "", "process", "running", None, identity,
        ancestors=tuple((each, 7) for each in above),
    )  # fmt: skip
    return Judgement(sighting, Verdict.REAP, "", "")


def _row(pid: int, comm: str) -> ProcessRow:
    return ProcessRow(pid, 1, 7, 0, pid, 0, "S", comm, "", (), None, True, False, None)


def _parted(
    names: dict[int, str], *targets: Judgement
) -> tuple[list[str], dict[str, list[str]], list[str]]:
    parted = part(targets, {pid: _row(pid, comm) for pid, comm in names.items()})
    return (
        [t.sighting.id for t in parted.others],
        {signal: [t.sighting.id for t in group] for signal, group in parted.servers.items()},
        [t.sighting.id for t in parted.below],
    )


@pytest.mark.parametrize(
    ("comm", "signal"),
    [
        ("postgres", "SIGINT"),
        ("postmaster", "SIGINT"),
        ("mysqld", "SIGTERM"),
        ("mariadbd", "SIGTERM"),
        ("mongod", "SIGTERM"),
    ],
)
def test_a_database_server_is_asked_by_its_own_signal(comm: str, signal: str) -> None:
    assert _parted({9: comm}, _target(9, 1)) == ([], {signal: ["9"]}, [])


def test_a_servers_parts_and_what_they_started_wait_for_its_end() -> None:
    names = {9: "postgres", 10: "postgres", 11: "sh"}
    targets = (_target(10, 9, 1), _target(11, 10, 9, 1), _target(9, 1))
    assert _parted(names, *targets) == ([], {"SIGINT": ["9"]}, ["10", "11"])


def test_servers_beside_each_other_are_each_asked() -> None:
    names = {9: "postgres", 10: "postgres", 11: "mysqld"}
    targets = (_target(9, 1), _target(10, 1), _target(11, 1))
    assert _parted(names, *targets) == ([], {"SIGINT": ["9", "10"], "SIGTERM": ["11"]}, [])


def test_what_stands_above_or_beside_a_server_is_ended_as_usual() -> None:
    names = {8: "sh", 9: "postgres", 10: "node"}
    targets = (_target(8, 1), _target(9, 8, 1), _target(10, 8, 1))
    assert _parted(names, *targets) == (["8", "10"], {"SIGINT": ["9"]}, [])


def test_what_has_ended_since_the_look_is_ended_as_usual() -> None:
    assert _parted({}, _target(9, 1)) == (["9"], {}, [])


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@localhost/a", "postgresql://me:***@localhost/a"),
        ("postgresql://me@localhost/a", "postgresql://me@localhost/a"),
        ("sqlite:////w/a.sqlite3", "sqlite:////w/a.sqlite3"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
