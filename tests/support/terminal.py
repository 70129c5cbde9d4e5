"""A terminal with a program in it, as a person sits before it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from support.processes import Tracker

# A new session whose controlling terminal is what stands on stdin.
_TAKE = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
_PATIENCE = 20.0
PROMPT = "ready> "


class Terminal:
    """A pseudo-terminal and the program in it; what it showed is matched from where one was."""

    def __init__(self, track: Tracker, argv: Sequence[str], cwd: Path, **more: str) -> None:
        self._master, slave = os.openpty()
        self.shown = ""
        self._at = 0
        self.process = track.spawn(
            [sys.executable, "-c", _TAKE, *argv],
            cwd=cwd,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "dumb", "PS1": PROMPT, **more},
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """Take the terminal away."""
        with contextlib.suppress(OSError):  # EBADF: it was taken away already
            os.close(self._master)

    def type(self, text: str) -> None:
        """Type characters; `\\x03` is Ctrl-C, `\\x1a` is Ctrl-Z."""
        os.write(self._master, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until what is shown matches, after the last match; the match."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            found = re.compile(pattern, re.MULTILINE).search(self.shown, self._at)
            if found:
                self._at = found.end()
                return found
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"not shown: {pattern!r} in {self.shown[self._at :]!r}")

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # EIO: nobody has the other end any more
            return False
        self.shown += chunk.decode("utf-8", "replace")
        return bool(chunk)


def shell(track: Tracker, cwd: Path) -> Terminal:
    """A terminal with an interactive bash in it that shows PROMPT."""
    terminal = Terminal(track, ["bash", "--norc", "--noprofile", "-i"], cwd)
    terminal.expect(re.escape(PROMPT))
    return terminal
