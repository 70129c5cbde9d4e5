"""A thread that waits for its process takes no signal away from it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, signal, threading, time
from corral.kernel.threads import start_quiet_thread
release = threading.Event()
before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
start_quiet_thread(lambda: release.wait(20))
assert signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGCHLD)) == before
os.kill(os.getpid(), signal.SIGTERM)
print(signal.sigwaitinfo({signal.SIGTERM}).si_signo == signal.SIGTERM)
if os.fork() == 0:
    os._exit(0)
print(signal.sigtimedwait({signal.SIGCHLD}, 10) is not None)
release.set()
"""


def test_signals_reach_who_waits_for_them_and_not_the_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == "True\nTrue\n"
