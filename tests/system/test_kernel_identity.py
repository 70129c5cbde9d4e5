"""Identities of real processes: the same for life, and never another one's."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from corral.errors import InvalidValueError
from corral.kernel import _pidfd, clock, identity, procfs
from corral.kernel.identity import ProcessGoneError, decode_identity, identify, own_identity
from corral.model.process import Presence, ProcessIdentity
from support.engines import require_engine
from support.programs import in_pid_namespace, program, said, started
from support.waiting import eventually

if TYPE_CHECKING:
    from support.processes import Tracker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pidfds are Linux's")

# What programs in other namespaces say of identities.
_TOOLS = """
from corral.errors import EnumerationError
from corral.kernel import clock
from corral.kernel.identity import ProcessGoneError, decode_identity, encode_identity, identify
from corral.kernel.identity import presence
from corral.kernel.pidfd import pin

def seen(one):
    return presence(one, boot_id=clock.boot_id())[0].value

def pinned(one):
    try:
        pin(one).close()
    except ProcessGoneError:
        return "gone"
    except EnumerationError:
        return "unknown"
    return "pinned"
"""


def presence(one: ProcessIdentity) -> Presence:
    state, reason = identity.presence(one, boot_id=clock.boot_id())
    assert str(one.pid) in reason
    return state


def test_an_identity_names_the_process_for_this_boot_and_namespace(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    found = identify(child.pid)
    row = procfs.snapshot().rows[child.pid]
    assert procfs.snapshot().identity(row).matches(found)
    assert found == identify(child.pid)
    assert presence(found) is Presence.ALIVE


def test_ones_own_identity_is_read_once_and_anew_after_a_fork() -> None:
    assert own_identity() == identify(os.getpid())
    source = """
        from corral.kernel.identity import identify, own_identity
        before = own_identity()
        pid = child(lambda: say([os.getpid() == own_identity().pid, own_identity() != before]))
        os.waitpid(pid, 0)
    """
    assert said(program(source)) == [True, True]


def test_exec_keeps_the_identity(track: Tracker) -> None:
    source = """
        say()
        sys.stdin.readline()
        os.execvp("sleep", ["sleep", "600"])
    """
    child, _ = started(track, program(source), stdin=-1)
    before = identify(child.pid)
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.close()
    eventually(lambda: procfs.snapshot().rows[child.pid].argv == ("sleep", "600"))
    assert identify(child.pid) == before
    assert presence(before) is Presence.ALIVE


def test_exec_by_another_thread_keeps_the_identity(track: Tracker) -> None:
    source = """
        say()
        sys.stdin.readline()
        threading.Thread(target=lambda: os.execvp("sleep", ["sleep", "600"])).start()
        sleep()
    """
    child, _ = started(track, program(source), stdin=-1)
    before = identify(child.pid)
    assert child.stdin is not None
    child.stdin.write(b"go\n")
    child.stdin.close()
    eventually(lambda: procfs.snapshot().rows[child.pid].argv == ("sleep", "600"))
    assert identify(child.pid) == before
    assert presence(before) is Presence.ALIVE


def test_a_zombie_is_gone(track: Tracker) -> None:
    child = track.spawn(["sleep", "600"])
    one = identify(child.pid)
    child.kill()
    eventually(lambda: (row := procfs.look_at(child.pid)) is not None and row.dead)
    assert presence(one) is Presence.GONE
    with pytest.raises(ProcessGoneError):
        identify(child.pid)
    child.wait()
    assert presence(one) is Presence.GONE
    with pytest.raises(ProcessGoneError):
        identify(child.pid)


def test_a_process_whose_first_thread_ended_is_alive(track: Tracker) -> None:
    source = """
        threading.Thread(target=lambda: (say(), sleep())).start()
        libc.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
    """
    child, _ = started(track, program(source))
    one = identify(child.pid)
    eventually(lambda: (row := procfs.look_at(child.pid)) is not None and row.state == "z")
    assert presence(one) is Presence.ALIVE
    assert identify(child.pid) == one


def test_another_boot_is_proof_that_it_is_gone() -> None:
    state, reason = identity.presence(own_identity(), boot_id="another")
    assert state is Presence.GONE
    assert "before the machine was started again" in reason


def test_a_reboot_proves_the_end_also_across_namespaces() -> None:
    other = own_identity()._replace(pid_namespace=1)
    assert identity.presence(other, boot_id="another")[0] is Presence.GONE


def test_a_pid_that_is_now_a_threads_is_gone() -> None:
    done = threading.Event()
    ids: list[int] = []

    def linger() -> None:
        ids.append(threading.get_native_id())
        done.wait()

    thread = threading.Thread(target=linger)
    thread.start()
    try:
        tid = eventually(lambda: ids)[0]
        assert os.path.exists(f"/proc/{tid}/stat")
        with pytest.raises(ProcessGoneError):
            identify(tid)
        assert presence(own_identity()._replace(pid=tid)) is Presence.GONE
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**80])
def test_what_is_no_pid_is_refused(pid: int) -> None:
    with pytest.raises(InvalidValueError):
        identify(pid)


def test_no_process_is_told_from_a_failed_look() -> None:
    free = 2**22 - 1  # above the kernel's largest possible pid
    with pytest.raises(ProcessGoneError):
        identify(free)
    source = (
        _TOOLS
        + """
import resource
one = identify(os.getppid())
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
found = [seen(one), pinned(one)]
try:
    identify(os.getppid())
except EnumerationError as error:
    say([*found, error.backend])
"""
    )
    assert said(program(source)) == ["unknown", "unknown", "process"]


def test_the_inode_is_used_only_where_the_kernel_makes_it_unique(track: Tracker) -> None:
    import ctypes

    fds = [os.pidfd_open(os.getpid()), os.pidfd_open(track.spawn(["sleep", "600"]).pid)]
    try:
        buffer = (ctypes.c_long * 32)()
        assert ctypes.CDLL(None).fstatfs(fds[0], buffer) == 0
        pidfs = buffer[0] == 0x50494446
        inodes = [_pidfd.unique_inode(fd) for fd in fds]
        assert (inodes[0] is not None) == pidfs
        assert (inodes[0] != inodes[1]) == pidfs
    finally:
        for fd in fds:
            os.close(fd)


def test_a_recycled_pid_never_matches() -> None:
    require_engine("namespaces")
    source = (
        _TOOLS
        + """
first = child(sleep)
one = identify(first)
end(first)
while clock.boottime() * os.sysconf("SC_CLK_TCK") < one.start_ticks + 2:
    pass
assert reborn(first, sleep) == first
bare = one._replace(pidfd_inode=None)
say([seen(one), pinned(one), seen(bare), pinned(bare), seen(identify(first))])
"""
    )
    found = said(in_pid_namespace(program(source)))
    assert found == ["gone", "gone", "gone", "gone", "alive"]


def test_a_pid_recycled_within_one_clock_tick_never_matches() -> None:
    require_engine("namespaces")
    source = (
        _TOOLS
        + """
for _ in range(300):
    first = child(sleep)
    one = identify(first)
    end(first)
    assert reborn(first, sleep) == first
    other = identify(first)
    if one.start_ticks == other.start_ticks:
        break
    end(first)
say([one.start_ticks == other.start_ticks, other.pidfd_inode is None, seen(one), pinned(one),
     seen(other)])
"""
    )
    same_tick, old_kernel, *states = said(in_pid_namespace(program(source)))
    assert same_tick
    if old_kernel:
        pytest.skip("this kernel has no pidfs, so two processes can share an identity")
    assert states == ["gone", "gone", "alive"]


def test_a_process_named_in_another_namespace_is_unknown(track: Tracker) -> None:
    require_engine("namespaces")
    source = _TOOLS + "say(encode_identity(identify(os.getpid()))); sleep()"
    outer, pairs = started(track, in_pid_namespace(program(source)))
    inner = decode_identity(pairs)
    assert (inner.pid, inner.pid_namespace != own_identity().pid_namespace) == (1, True)
    state, reason = identity.presence(inner, boot_id=clock.boot_id())
    assert (state, "another pid namespace" in reason) == (Presence.UNKNOWN, True)
    outer.kill()
    outer.wait()
    assert identity.presence(inner, boot_id=clock.boot_id())[0] is Presence.UNKNOWN


def test_a_process_outside_is_unknown_from_within_a_namespace() -> None:
    require_engine("namespaces")
    pairs = identity.encode_identity(own_identity())
    source = _TOOLS + f"one = decode_identity({pairs!r})\nsay([seen(one), pinned(one)])"
    assert said(in_pid_namespace(program(source))) == ["unknown", "unknown"]


def test_under_the_proc_of_another_namespace_nothing_is_known() -> None:
    require_engine("namespaces")
    pairs = identity.encode_identity(own_identity())
    source = _TOOLS + f"one = decode_identity({pairs!r})\nsay([seen(one), pinned(one)])"
    assert said(["unshare", "-pf", *program(source)]) == ["unknown", "unknown"]


@pytest.mark.parametrize("pidfds", [True, False])
def test_a_hidden_process_that_lives_is_unknown_and_not_gone(track: Tracker, pidfds: bool) -> None:
    require_engine("namespaces")
    pairs = identity.encode_identity(identify(track.spawn(["sleep", "600"]).pid))
    source = _TOOLS + f"one = decode_identity({pairs!r})\nimport select, errno\nbecome_nobody()\n"
    if not pidfds:
        source += "refuse(434, errno.ENOSYS)\n"
    source += "say([seen(one), pinned(one)])"
    mounted = 'mount -t proc -o hidepid=2 none /proc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", mounted, "sh", *program(source)]
    assert said(argv) == ["unknown", "unknown"]


@pytest.mark.parametrize("reason", ["ENOSYS", "EPERM"])
def test_without_pidfds_the_start_time_still_tells_processes_apart(reason: str) -> None:
    source = (
        _TOOLS
        + f"""
import errno
refuse(434, errno.{reason})
first = child(sleep)
one = identify(first)
found = [one.pidfd_inode, seen(one), pinned(one), seen(one._replace(start_ticks=1))]
os.kill(first, signal.SIGKILL)
os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
found += [seen(one), pinned(one)]
os.waitpid(first, 0)
say([*found, seen(one), pinned(one)])
"""
    )
    assert said(program(source)) == [None, "alive", "pinned", "gone", *["gone"] * 4]


def test_an_unprivileged_user_names_another_users_process() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    source = _TOOLS + "import select\nbecome_nobody()\nsay(seen(identify(os.getppid())))"
    assert said(program(source)) == "alive"


def test_an_identity_without_a_readable_proc_is_an_error() -> None:
    require_engine("namespaces")
    source = _TOOLS + (
        "try:\n    identify(os.getpid())\nexcept EnumerationError as error:\n    say(error.backend)"
    )
    hidden = 'mount -t tmpfs none /proc && exec "$@"'
    assert said(["unshare", "-m", "sh", "-c", hidden, "sh", *program(source)]) == "process"
