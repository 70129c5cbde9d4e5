"""Processes that a test starts, each ended through its own pidfd and never by pattern."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PATIENCE = 10.0


class Tracker:
    """Remembers exactly the processes of one test; `end()` kills and waits for each of them.

    A pidfd is taken at the moment a process is remembered, so that a pid which was given to
    another process in the meantime is never signalled.
    """

    def __init__(self) -> None:
        self._children: list[subprocess.Popen[Any]] = []
        self._pinned: dict[int, int] = {}

    def spawn(
        self, argv: Sequence[str | os.PathLike[str]], **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a child as `subprocess.Popen` does and remember it."""
        child: subprocess.Popen[Any] = subprocess.Popen(argv, **options)
        self._children.append(child)
        return child

    def pid(self, pid: int) -> int:
        """Remember a process that something else started (a daemon, a grandchild); its pid."""
        if pid not in self._pinned and hasattr(os, "pidfd_open"):
            # ESRCH: it is gone already, so there is nothing to end
            with contextlib.suppress(ProcessLookupError):
                self._pinned[pid] = os.pidfd_open(pid)
        return pid

    def keep_only(self, pids: Iterable[int]) -> None:
        """Forget, unharmed, every remembered process that is not among `pids`."""
        for pid in self._pinned.keys() - set(pids):
            os.close(self._pinned.pop(pid))

    def end(self) -> None:
        """End all that is remembered; raises AssertionError for what does not die."""
        stubborn = [pid for pid, fd in self._pinned.items() if not _kill(fd)]
        self._pinned.clear()
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait(_PATIENCE)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    # EPIPE: what was still buffered for a reader that is gone
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        self._children.clear()
        assert not stubborn, f"processes that survived SIGKILL: {stubborn}"


def _kill(fd: int) -> bool:
    try:
        # ESRCH: it ended by itself
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        return bool(select.select([fd], [], [], _PATIENCE)[0])
    finally:
        os.close(fd)


def standing_in(root: str) -> Iterator[int]:
    """Pids of this user whose working directory is `root` or below it (Linux; else none)."""
    for entry in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        try:
            where = os.readlink(f"/proc/{entry}/cwd")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it went away, or is not ours
        if f"{where}/".startswith(f"{root}/") and int(entry) != os.getpid():
            yield int(entry)


def in_exec() -> Iterator[int]:
    """Pids that are between two programs: for that moment neither words nor variables are shown.

    Where a processor is contended the moment can be long.
    """
    for entry in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc/self") else ()):
        try:
            os.readlink(f"/proc/{entry}/exe")  # the kernel's own threads and zombies have none
            if not any(
                Path(f"/proc/{entry}/{name}").read_bytes() for name in ("cmdline", "environ")
            ):
                yield int(entry)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it went away, or is not ours


def carrying(variable: str, value: str) -> Iterator[int]:
    """Pids of this user whose environment holds exactly `variable=value` (Linux; else none)."""
    if not os.path.isdir("/proc/self"):
        return
    wanted = f"{variable}={value}".encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it went away, or is not ours
        if wanted in variables:
            yield int(entry)
