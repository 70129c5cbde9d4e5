"""Orphans go to the subreaper, and a child learns of its parent's death."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from corral.kernel import procstat
from corral.kernel.identity import identify
from corral.kernel.pidfd import pin
from support.programs import program, said, started

if TYPE_CHECKING:
    from support.processes import Tracker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")

_DAEMONISE = """
from corral.kernel.subreaper import become_subreaper, set_parent_death_signal
from corral.kernel.procstat import read_stat
reader, writer = os.pipe()

def daemonise():
    os.setsid()
    daemon = child(sleep)
    os.write(writer, f"{daemon}\\n".encode())

def daemon_of():
    os.waitpid(child(daemonise), 0)
    return int(os.read(reader, 100))
"""


def test_a_daemon_of_the_tree_is_inherited() -> None:
    source = """
before = daemon_of()
took = become_subreaper()
after = daemon_of()
parents = [read_stat(pid).ppid == os.getpid() for pid in (before, after)]
end(after)
os.kill(before, signal.SIGKILL)
say([took, *parents])
"""
    assert said(program(_DAEMONISE + source)) == [True, False, True]


def test_children_of_a_subreaper_are_none_themselves(track: Tracker) -> None:
    source = """
become_subreaper()
def inner():
    say(daemon_of())
    sleep()
middle = child(inner)
sleep()
"""
    outer, daemon = started(track, program(_DAEMONISE + source))
    track.pid(daemon)
    stat = procstat.read_stat(daemon)
    assert stat is not None
    assert stat.ppid == outer.pid


def test_a_child_is_signalled_when_its_parent_dies(track: Tracker) -> None:
    source = """
def watched():
    say([set_parent_death_signal(signal.SIGTERM), os.getpid()])
    sleep()
child(watched)
sleep()
"""
    parent, (took, pid) = started(track, program(_DAEMONISE + source))
    track.pid(pid)
    assert took is True
    with pin(identify(pid)) as one:
        assert not one.wait(0)
        parent.send_signal(signal.SIGKILL)
        assert one.wait(10)


def test_a_signal_that_does_not_exist_is_refused() -> None:
    assert said(program(_DAEMONISE + "say(set_parent_death_signal(4711))")) is False
