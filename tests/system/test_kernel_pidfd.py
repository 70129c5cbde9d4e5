"""Signals that reach exactly one process or nobody."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from corral.errors import EnumerationError
from corral.kernel import procfs
from corral.kernel.identity import ProcessGoneError, identify, own_identity
from corral.kernel.pidfd import Pinned, pin, wait_all, wait_any
from support.engines import require_engine
from support.programs import in_pid_namespace, program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from support.processes import Tracker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfds are Linux's")

_TOOLS = """
from corral.errors import EnumerationError
from corral.kernel.identity import ProcessGoneError, identify
from corral.kernel.pidfd import Pinned, pin, wait_all, wait_any
"""


def test_a_signal_reaches_the_pinned_process(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    with pin(identify(child.pid)) as one:
        assert one.alive()
        assert one.identity.pid == child.pid
        assert one.signal(signal.SIGTERM)
        assert one.wait(10)
        assert not one.alive()
    assert child.wait() == -signal.SIGTERM


def test_a_process_that_dies_after_it_was_pinned_is_not_signalled(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    with pin(identify(child.pid)) as one:
        child.kill()
        assert one.wait(10)
        assert not one.signal(signal.SIGTERM)  # a zombie still
        child.wait()
        assert not one.signal(signal.SIGTERM)  # and nobody now
        assert not one.signal(0)


@pytest.mark.parametrize("pidfds", [True, False])
def test_a_recycled_pid_is_never_signalled(pidfds: bool) -> None:
    require_engine("namespaces")
    source = (
        _TOOLS
        + f"""
import errno
{"pass" if pidfds else "refuse(434, errno.ENOSYS)"}
first = child(sleep)
held = pin(identify(first))
end(first)
from corral.kernel import clock
while clock.boottime() * os.sysconf("SC_CLK_TCK") < held.identity.start_ticks + 2:
    pass
assert reborn(first, sleep) == first
sent = [held.signal(signal.SIGKILL), held.alive(), held.wait(0)]
try:
    pin(held.identity)
except ProcessGoneError:
    sent.append("gone")
say([*sent, os.waitpid(first, os.WNOHANG)])
"""
    )
    found = said(in_pid_namespace(program(source)))
    assert found == [False, False, True, "gone", [0, 0]]


def test_what_was_pinned_stays_pinned_over_exec(track: Tracker) -> None:
    child, _ = started(
        track, program('say(); sys.stdin.read(1); os.execvp("cat", ["cat"])'), stdin=-1
    )
    with pin(identify(child.pid)) as one:
        assert child.stdin is not None
        child.stdin.write(b"x")
        child.stdin.flush()
        eventually(lambda: procfs.snapshot().rows[child.pid].argv == ("cat",))
        assert one.signal(signal.SIGKILL)
        assert one.wait(10)


def test_a_stopped_process_is_alive_and_ends_after_continue(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    with pin(identify(child.pid)) as one:
        assert one.signal(signal.SIGSTOP)
        eventually(lambda: procfs.snapshot().rows[child.pid].state == "T")
        assert one.signal(signal.SIGTERM)
        assert not one.wait(0.05)
        assert one.signal(signal.SIGCONT)
        assert one.wait(10)


def test_a_wait_ends_with_its_time(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    with pin(identify(child.pid)) as one:
        begin = time.monotonic()
        assert not one.wait(0.05)
        assert 0.05 <= time.monotonic() - begin < 5
        assert not one.wait(0)
        assert not one.wait(-1)


def test_the_first_that_ends_is_told_and_all_are_waited_for(track: Tracker) -> None:
    children = [track.spawn(["sleep", "600"]) for _ in range(3)]
    pinned = [pin(identify(child.pid)) for child in children]
    try:
        assert wait_any(pinned, 0) == ()
        assert wait_all(pinned, 0.01) == tuple(pinned)
        children[1].kill()
        assert wait_any(pinned, 10) == (pinned[1],)
        assert wait_all(pinned, 0.01) == (pinned[0], pinned[2])
        children[0].kill()
        children[2].kill()
        assert wait_all(pinned, 10) == ()
        assert wait_any(pinned, 0) == tuple(pinned)
    finally:
        for one in pinned:
            one.close()


def test_waiting_for_nobody_takes_no_time() -> None:
    begin = time.monotonic()
    assert (wait_any([], 60), wait_all([], 60)) == ((), ())
    assert time.monotonic() - begin < 30


def test_what_was_let_go_is_not_used_again(track: Tracker) -> None:
    one = pin(identify(track.spawn(["sleep", "600"]).pid))
    fd = one.fileno()
    one.close()
    one.close()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(fd)
    for use in (one.fileno, one.alive, lambda: one.signal(0), lambda: one.wait(0)):
        with pytest.raises(ValueError, match="not pinned any more"):
            use()


def test_a_pidfd_is_not_passed_on_to_programs(track: Tracker) -> None:
    with pin(identify(track.spawn(["sleep", "600"]).pid)) as one:
        assert not os.get_inheritable(one.fileno())


def test_what_is_gone_cannot_be_pinned(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    one = identify(child.pid)
    child.kill()
    child.wait()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ProcessGoneError):
        pin(one)
    with pytest.raises(ProcessGoneError):
        pin(own_identity()._replace(start_ticks=1, pidfd_inode=None))
    with pytest.raises(EnumerationError, match="another pid namespace"):
        pin(own_identity()._replace(pid_namespace=1))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("pidfds", [True, False])
def test_a_refused_signal_is_an_error_and_not_gone(pidfds: bool) -> None:
    source = (
        _TOOLS
        + f"""
import errno, select
become_nobody()
{"pass" if pidfds else "refuse(434, errno.ENOSYS)"}
try:
    pin(identify(os.getppid())).signal(signal.SIGTERM)
except EnumerationError as error:
    say([error.backend, error.message.partition(" cannot ")[2]])
"""
    )
    reason = f"be signalled: {os.strerror(errno.EPERM)}"
    assert said(program(source)) == ["process", reason]


def test_without_pidfds_signals_and_waits_still_work() -> None:
    source = (
        _TOOLS
        + """
import errno
refuse(434, errno.ENOSYS)
first, second = child(sleep), child(sleep)
a, b = pin(identify(first)), pin(identify(second))
found = [a.alive(), a.wait(0.01), wait_any([a, b], 0) == ()]
try:
    a.fileno()
except EnumerationError:
    found.append("no pidfd")
found += [a.signal(signal.SIGKILL), wait_any([a, b], 10) == (a,), wait_all([a, b], 0.01) == (b,)]
found += [a.signal(signal.SIGKILL), b.signal(signal.SIGKILL), wait_all([a, b], 10) == ()]
a.close()
say(found)
"""
    )
    assert said(program(source)) == [
        *[True, False, True, "no pidfd"],
        *[True, True, True],
        *[False, True, True],
    ]


def test_without_pidfds_a_look_that_fails_signals_nobody(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    foreign = identify(child.pid)._replace(pid_namespace=1, pidfd_inode=None)
    with pytest.raises(EnumerationError):
        Pinned(foreign, None).signal(signal.SIGKILL)
    assert child.poll() is None


def test_an_ended_process_in_a_race_with_its_signal_is_no_error() -> None:
    source = (
        _TOOLS
        + """
outcomes = set()
for _ in range(200):
    pid = child(lambda: None)
    try:
        with pin(identify(pid)) as one:
            outcomes.add(one.signal(signal.SIGTERM))
            assert one.wait(10)
    except ProcessGoneError:
        outcomes.add("gone")
    os.waitpid(pid, 0)
say(outcomes <= {True, False, "gone"})
"""
    )
    assert said(program(source)) is True
