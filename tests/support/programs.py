"""Small programs that tests run in processes of their own, and what they say."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from support.processes import Tracker

_PRELUDE = '''\
import ctypes, json, os, signal, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def say(value=None):
    print(json.dumps(value), flush=True)

def sleep():
    time.sleep(600)

def become_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

def child(action):
    pid = os.fork()
    if not pid:
        try:
            action()
        finally:
            os._exit(0)
    return pid

def reborn(pid, action):
    """A child that is given this pid again; only in a pid namespace of its own."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    return child(action)

def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

def refuse(call, errno):
    """From now on this system call fails with errno, as under a container's filter."""
    class Step(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8),
                    ("value", ctypes.c_uint32)]
    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]
    steps = (Step * 4)(Step(0x20, 0, 0, 0), Step(0x15, 0, 1, call),
                       Step(0x06, 0, 0, 0x00050000 | errno), Step(0x06, 0, 0, 0x7FFF0000))
    done = Filter(4, ctypes.cast(steps, ctypes.POINTER(Step)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0, "no_new_privs"
    assert libc.prctl(22, 2, ctypes.byref(done), 0, 0) == 0, "seccomp"
'''


def program(source: str) -> list[str]:
    """The argv that runs `source` after a prelude: say(value), sleep(), child(action) and more."""
    return [sys.executable, "-c", _PRELUDE + textwrap.dedent(source)]


def started(
    track: Tracker, argv: Sequence[str | os.PathLike[str]], **options: Any
) -> tuple[subprocess.Popen[bytes], Any]:
    """A tracked child and the first value that it said (JSON, one line)."""
    process: subprocess.Popen[bytes] = track.spawn(argv, stdout=subprocess.PIPE, **options)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def said(argv: Sequence[str], **options: Any) -> Any:
    """The last value that a program said; its errors go to the test's own stderr."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60, **options)
    return json.loads(done.stdout.splitlines()[-1])


def in_pid_namespace(argv: Sequence[str]) -> list[str]:
    """The argv that runs `argv` as pid 1 of a pid namespace with a /proc of its own."""
    return ["unshare", "-pf", "--kill-child", "--mount-proc", *argv]
