"""Ports that processes claim: several for each, never another's, reclaimed on proof only."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral import (
    allocate_ephemeral_port,
    allocate_port_run,
    list_allocations,
    reap_stale_allocations,
    record_allocation,
    release_allocation,
)
from corral.errors import CorralError, EnumerationError, ForeignError, HeldError, InvalidValueError
from corral.kernel.identity import ProcessGoneError, own_identity
from corral.model.environment import Claim, ClaimKind
from corral.model.process import Presence
from corral.services.calling import calling_context
from corral.services.process_ports import claim_of, reclaim
from corral.store import claims
from support.programs import program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corral import EphemeralPort
    from support.processes import Tracker

_POOL = (21100, 21149)
_TAKE = """
from corral import *
held = [allocate_ephemeral_port("other", pool=(21100, 21149)) for _ in range(int(sys.argv[1]))]
say([each.port for each in held])
"""


def _ports() -> list[int]:
    return sorted(each.port for each in list_allocations())


@contextlib.contextmanager
def _listening(host: str, port: int = 0) -> Iterator[int]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen()
        yield int(server.getsockname()[1])


def test_a_port_is_claimed_and_held_until_it_is_released() -> None:
    held, port = allocate_ephemeral_port("w1")
    (row,) = list_allocations()
    assert (row.worker_id, row.port, row.protocol) == ("w1", port, "tcp")
    assert row.holder == own_identity()
    assert row.presence is Presence.ALIVE
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    held.release()
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
    assert release_allocation("w1", port) == 1
    assert list_allocations() == ()


def test_a_server_listens_over_a_held_port_without_a_gap() -> None:
    with (
        allocate_ephemeral_port() as given,
        _listening("127.0.0.1", given.port),
        socket.create_connection(("127.0.0.1", given.port), timeout=5),
    ):
        assert _ports() == [given.port]
    assert list_allocations() == ()


def test_a_holder_has_several_claims_and_no_port_twice() -> None:
    given = [allocate_ephemeral_port("w", pool=_POOL) for _ in range(20)]
    assert len({each.port for each in given}) == 20
    assert _ports() == sorted(each.port for each in given)
    assert release_allocation("w") == 20
    for each in given:
        each.held.release()


def test_ports_come_from_the_pool_of_the_settings(
    git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (git_repo / "corral.toml").write_text("[pool]\nfirst = 21100\nlast = 21102\n")
    monkeypatch.chdir(git_repo)
    with allocate_port_run(3) as run:
        assert run.ports == (21100, 21101, 21102)


def test_a_run_is_contiguous_and_whole_or_not_at_all() -> None:
    with _listening("127.0.0.1", 21105), allocate_port_run(5, pool=(21100, 21110)) as run:
        assert run.ports in {tuple(range(n, n + 5)) for n in (21100, 21106)}
        with pytest.raises(HeldError, match="6 ports in a row"):
            allocate_port_run(6, pool=(21100, 21110))
        assert len(list_allocations()) == 5


def test_a_run_that_never_fits_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="does not fit"):
        allocate_port_run(12, pool=(21100, 21110))
    with pytest.raises(InvalidValueError, match="0 ports"):
        allocate_port_run(0)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_port_on_which_somebody_listens_is_never_dealt(host: str) -> None:
    with _listening(host, 21100):
        with pytest.raises(HeldError, match="21100-21100"):
            allocate_ephemeral_port(pool=(21100, 21100))
        assert list_allocations() == ()
        with allocate_ephemeral_port(pool=(21100, 21101)) as given:
            assert given.port == 21101


def test_a_pool_of_one_port_gives_that_port_once() -> None:
    with allocate_ephemeral_port(pool=(21100, 21100)) as given:
        assert given.port == 21100
        with pytest.raises(HeldError):
            allocate_ephemeral_port(pool=(21100, 21100))
    with allocate_ephemeral_port(pool=(21100, 21100)):
        pass


@pytest.mark.parametrize("pool", [(21100, 21099), (0, 0), (60000, 70000), (80, 90), ("a", "b")])
def test_a_pool_that_is_none_is_refused(pool: tuple[int, int]) -> None:
    with pytest.raises(InvalidValueError):
        allocate_ephemeral_port(pool=pool)


@pytest.mark.parametrize("port", [0, -1, 65536, 2**70, "abc", "80", None, True, 8.5])
def test_what_is_no_port_is_never_recorded(port: object) -> None:
    with pytest.raises(InvalidValueError):
        record_allocation("w", port)  # type: ignore[arg-type]
    with contextlib.suppress(InvalidValueError):
        release_allocation("w", port)  # type: ignore[arg-type]
    assert list_allocations() == ()


def test_an_address_that_is_not_here_is_refused_and_nothing_stays_claimed() -> None:
    with pytest.raises(CorralError):
        allocate_ephemeral_port(hosts=("203.0.113.7",), pool=_POOL)
    assert list_allocations() == ()


def test_a_stranger_can_neither_overwrite_nor_release(track: Tracker) -> None:
    other, (port,) = started(track, [*program(_TAKE + "sleep()"), "1"])
    with pytest.raises(HeldError, match=f"process {other.pid}"):
        record_allocation("mine", port)
    for pid in (None, other.pid):
        with pytest.raises(ForeignError, match=f"process {other.pid}"):
            release_allocation("other", port, pid=pid)
        with pytest.raises(ForeignError):
            release_allocation("other", pid=pid)
    assert release_allocation("mine", port) == 0
    assert reap_stale_allocations() == ()
    (row,) = list_allocations()
    assert (row.worker_id, row.holder.pid) == ("other", other.pid)


def test_the_same_worker_id_of_another_process_gives_no_right(track: Tracker) -> None:
    _, (port,) = started(track, [*program(_TAKE + "sleep()"), "1"])
    with allocate_ephemeral_port("other", pool=_POOL) as mine:
        assert mine.port != port
        assert release_allocation("other") == 1
    assert _ports() == [port]


def test_an_environments_port_is_never_taken_over() -> None:
    claim = Claim(ClaimKind.PORT, "tcp", "21100", "web", "env-1", None, "own-1", 1.0)
    with calling_context().registry.write() as conn:
        claims.take(conn, claim)
    with pytest.raises(HeldError, match="env-1"):
        record_allocation("w", 21100)
    with pytest.raises(HeldError):
        allocate_ephemeral_port(pool=(21100, 21100))
    assert release_allocation("own-1", 21100) == 0
    assert reap_stale_allocations() == ()
    with calling_context().registry.read() as conn:
        assert claims.find(conn, ClaimKind.PORT, "tcp", "21100") == claim


def test_what_a_dead_process_had_is_reclaimed_and_nothing_else(track: Tracker) -> None:
    dead, ports = started(track, [*program(_TAKE + "sleep()"), "3"])
    _, kept = started(track, [*program(_TAKE + "sleep()"), "2"])
    assert reap_stale_allocations() == ()
    dead.kill()
    dead.wait()
    assert {a.presence for a in list_allocations() if a.port in ports} == {Presence.GONE}
    assert sorted(a.port for a in reap_stale_allocations()) == sorted(ports)
    assert _ports() == sorted(kept)
    assert reap_stale_allocations() == ()


def test_a_zombie_holds_nothing(track: Tracker) -> None:
    dead, (port,) = started(track, [*program(_TAKE + "sleep()"), "1"])
    dead.send_signal(signal.SIGKILL)
    assert eventually(lambda: [a.port for a in reap_stale_allocations()]) == [port]
    dead.wait()


def test_what_cannot_be_looked_at_keeps_what_it_has() -> None:
    elsewhere = own_identity()._replace(pid_namespace=1)
    with calling_context().registry.write() as conn:
        claims.take(conn, claim_of(21100, "container", elsewhere))
    assert [a.presence for a in list_allocations()] == [Presence.UNKNOWN]
    assert reap_stale_allocations() == ()
    with pytest.raises(ForeignError):
        release_allocation("container")
    with pytest.raises(HeldError):
        record_allocation("w", 21100)
    with pytest.raises(HeldError):
        allocate_ephemeral_port(pool=(21100, 21100))


def test_a_holder_of_an_earlier_boot_is_gone() -> None:
    before = own_identity()._replace(boot_id="00000000-0000-0000-0000-000000000000")
    with calling_context().registry.write() as conn:
        claims.take(conn, claim_of(21100, "before", before))
    assert [a.port for a in reap_stale_allocations()] == [21100]


def test_a_recycled_pid_is_no_holder() -> None:
    own = own_identity()
    inode = None if own.pidfd_inode is None else own.pidfd_inode + 1
    before = own._replace(start_ticks=own.start_ticks - 1, pidfd_inode=inode)
    with calling_context().registry.write() as conn:
        claims.take(conn, claim_of(21100, "before", before))
    assert record_allocation("w", 21100).holder == own


def test_a_full_pool_reclaims_from_the_dead(track: Tracker) -> None:
    dead, _ = started(track, [*program(_TAKE + "sleep()"), "50"])
    with pytest.raises(HeldError):
        allocate_ephemeral_port(pool=_POOL)
    dead.kill()
    dead.wait()
    with allocate_port_run(50, pool=_POOL) as run:
        assert len(run.ports) == 50


def test_a_claim_that_is_renewed_while_the_reaper_decides_survives(track: Tracker) -> None:
    dead, (port,) = started(track, [*program(_TAKE + "sleep()"), "1"])
    dead.kill()
    dead.wait()
    registry = calling_context().registry
    with registry.read() as conn:
        stale = claims.find(conn, ClaimKind.PORT, "tcp", str(port))
    assert stale is not None
    record_allocation("renewed", port)
    with registry.write() as conn:
        assert not claims.release(conn, stale.kind, stale.scope, stale.value, holder=stale.holder)
    assert reclaim(registry) == ()
    assert [a.worker_id for a in list_allocations()] == ["renewed"]


def test_a_launcher_records_and_releases_for_its_child(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    row = record_allocation("job", 21100, pid=child.pid)
    assert row.holder.pid == child.pid
    with pytest.raises(HeldError):
        record_allocation("mine", 21100)
    assert release_allocation("job", 21100, pid=child.pid) == 1
    record_allocation("job", 21101, pid=child.pid)
    child.kill()
    child.wait()
    assert [a.port for a in reap_stale_allocations()] == [21101]


def test_recording_again_takes_on_the_new_worker_id() -> None:
    record_allocation("one", 21100)
    record_allocation("two", 21100)
    assert [a.worker_id for a in list_allocations()] == ["two"]
    assert list_allocations("one") == ()
    assert len(list_allocations("two")) == 1


def test_tcp_and_udp_are_claimed_apart() -> None:
    record_allocation("w", 21100, protocol="tcp")
    record_allocation("w", 21100, protocol="udp")
    assert sorted(a.protocol for a in list_allocations()) == ["tcp", "udp"]
    assert release_allocation("w", 21100, protocol="udp") == 1
    assert [a.protocol for a in list_allocations()] == ["tcp"]
    with pytest.raises(InvalidValueError, match="sctp"):
        record_allocation("w", 21100, protocol="sctp")


def test_no_record_without_an_identity(track: Tracker) -> None:
    gone = track.spawn(["true"])
    gone.wait()
    for pid in (gone.pid, -1, 0, 2**40):
        with pytest.raises((ProcessGoneError, EnumerationError, InvalidValueError)):
            record_allocation("w", 21100, pid=pid)
    assert list_allocations() == ()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(), max_size=50) | st.sampled_from(["../../x", "'; DROP TABLE claim--"])
)
def test_a_worker_id_is_data(worker_id: str) -> None:
    record_allocation(worker_id, 21100)
    assert [a.worker_id for a in list_allocations(worker_id)] == [worker_id]
    assert release_allocation(worker_id) == 1
    assert list_allocations() == ()


@pytest.mark.parametrize("worker_id", [None, 7, b"w", "x" * 5000])
def test_a_worker_id_that_cannot_be_recorded_is_refused(worker_id: object) -> None:
    with pytest.raises(InvalidValueError, match="worker id"):
        record_allocation(worker_id, 21100)  # type: ignore[arg-type]
    assert list_allocations() == ()


def test_a_forked_child_releases_nothing_of_its_parents() -> None:
    source = """
from corral import *
given = allocate_ephemeral_port("w")
os.waitpid(child(given.release), 0)
say([a.port for a in list_allocations()] == [given.port])
"""
    assert said(program(source)) is True


def test_threads_claim_at_once() -> None:
    given: list[EphemeralPort] = []

    def claim() -> None:
        given.extend(allocate_ephemeral_port(pool=_POOL) for _ in range(5))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.port for each in given}) == len(given) == 40
    assert _ports() == sorted(each.port for each in given)
    for each in given:
        each.release()


def test_a_row_that_cannot_be_read_is_in_nobodys_way(state_dir: Path) -> None:
    import sqlite3

    with allocate_ephemeral_port(pool=_POOL):
        pass
    conn = sqlite3.connect(state_dir / "registry.sqlite3")
    conn.execute(
        "INSERT INTO claim VALUES ('port', 'tcp', '21100', '', NULL, '{torn', 'w', 1.0, '')"
    )
    conn.commit()
    conn.close()
    assert list_allocations() == ()
    assert reap_stale_allocations() == ()
    with allocate_ephemeral_port(pool=(21100, 21101)) as given:
        assert given.port == 21101
    with pytest.raises(CorralError):
        allocate_ephemeral_port(pool=(21100, 21100))


def test_another_user_cannot_be_recorded_for_but_is_not_thought_dead() -> None:
    record_allocation("init", 21100, pid=1)
    assert [a.presence for a in list_allocations()] == [Presence.ALIVE]
    assert reap_stale_allocations() == ()
    assert release_allocation("init", pid=1) == 1
    assert os.getpid() != 1
