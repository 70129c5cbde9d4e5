"""What a supervisor tells whoever starts it, and the word that lets it begin."""

from __future__ import annotations

import os
import select
import time

from corral.model.tuples import NamedTuple

_CHUNK = 4096
GO = b"g"


class News(NamedTuple):
    """A line from a supervisor: `word` is pid, started, failed, refused, exited or ended."""

    word: str
    text: str


class Line:
    """What the starting process hears from the supervisor, and the word that lets it begin."""

    def __init__(self, news: int, go: int) -> None:
        self._news = news
        self._go = go
        self._buffer = b""
        self._lines: list[News] = []

    def begin(self) -> None:
        """Let the supervisor start the service."""
        os.write(self._go, GO)
        os.close(self._go)
        self._go = -1

    def hear(self, seconds: float | None = None) -> News | None:
        """The next news within `seconds` (None: however long), or None; "ended" at the end."""
        deadline = None if seconds is None else time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._news, select.POLLIN)
        while not self._lines:
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            if not poll.poll(left):
                return None
            chunk = os.read(self._news, _CHUNK)
            if not chunk:
                return News("ended", "")
            self._take(chunk)
        return self._lines.pop(0)

    def _take(self, chunk: bytes) -> None:
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            word, _, text = line.decode("utf-8", "replace").partition(" ")
            self._lines.append(News(word, text))

    def close(self) -> None:
        """Stop listening; a supervisor that was not let go ends."""
        os.close(self._news)
        if self._go >= 0:
            os.close(self._go)
