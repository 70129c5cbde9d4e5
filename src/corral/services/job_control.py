"""Stand between a command in the foreground and whoever waits for it, unnoticed by both.

The command stays in corral's own process group and terminal. What the terminal sends reaches it
without corral; what somebody sends to corral alone is passed on once. When the command is
stopped, corral stops as well, so that the shell above sees it.
"""

from __future__ import annotations

import os
import signal
import time

from corral.errors import EnumerationError
from corral.kernel import children, procstat, signals
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from corral.kernel.pidfd import Pinned

TICK = 1.0
_FIRST_TICK, _GROWTH = 0.05, 2.0  # what is new at the start is looked at sooner


class Ended(NamedTuple):
    """How a command ended: its exit status as a shell gives it.

    `interrupted`: by the terminal's interrupt key, which was meant for whoever waits here as well.
    """

    status: int
    interrupted: bool


def wait_for(
    child: Pinned,
    *,
    tick: Callable[[], None],
    look: Callable[[], float | None] | None = None,
) -> Ended:
    """Wait for the command's end.

    The signals of `signals.WATCHED` must be blocked. `tick` is called while there are other
    children than the command, soon at first and then about once a second; `look` at once and then
    whenever the seconds that it returned are over, until it returns None. What either raises ends
    the wait.
    """
    return _Wait(child, tick, look).run()


class _Wait:
    def __init__(
        self, child: Pinned, tick: Callable[[], None], look: Callable[[], float | None] | None
    ) -> None:
        self._child = child
        self._tick = tick
        self._look = look
        self._next_look = time.monotonic()
        self._pace = _FIRST_TICK
        self._next_tick = time.monotonic() + self._pace
        self._seen = frozenset({child.identity.pid})
        self._interrupted = False

    def run(self) -> Ended:
        while True:
            received = signals.next_signal(signals.WATCHED, self._pause())
            if received is not None and received.number is not signal.SIGCHLD:
                self._pass_on(received)
            status = self._changes()
            if status is not None:
                interrupt = children.SIGNAL_BASE + signal.SIGINT
                return Ended(status, self._interrupted and status == interrupt)
            self._timely()

    def _pause(self) -> float:
        now = time.monotonic()
        until = self._next_tick if self._look is None else min(self._next_tick, self._next_look)
        return max(0.0, until - now)

    def _timely(self) -> None:
        now = time.monotonic()
        if self._look is not None and now >= self._next_look:
            pause = self._look()
            self._next_look = time.monotonic() + (pause or 0.0)
            if pause is None:
                self._look = None
        if now >= self._next_tick:
            self._pace = min(_GROWTH * self._pace, TICK)
            self._next_tick = now + self._pace
            found = children.child_pids()
            if found is None or found - self._seen:
                self._seen = found or self._seen
                self._tick()

    def _pass_on(self, received: signals.Received) -> None:
        """Forward what reached corral alone.

        A terminal sends to the whole foreground group, and a command that signals its group has
        that signal already.
        """
        if received.by_terminal and received.number is signal.SIGINT:
            self._interrupted = True
        pid = self._child.identity.pid
        if received.sender == pid or (received.by_terminal and _in_our_group(pid)):
            return
        if received.number is signal.SIGCONT and (
            not _is_stopped(pid) or signal.SIGTSTP in signal.sigpending()
        ):
            # A shell continues the whole group; once more, and late, would undo the next stop.
            return
        try:
            self._child.signal(received.number)
        except EnumerationError:
            # The command runs as another user (sudo), who alone may signal it.
            return

    def _changes(self) -> int | None:
        changes, _ = children.take_changes()
        status = None
        for change in changes:
            if change.pid != self._child.identity.pid:
                continue
            if change.status is None:
                self._stop()
            else:
                status = change.status
        return status

    @staticmethod
    def _stop() -> None:
        """Stop like the command did; without a terminal nobody would continue us."""
        terminal = signals.controlling_terminal()
        if terminal is not None:
            os.close(terminal)
            if signal.SIGCONT not in signal.sigpending():
                os.kill(os.getpid(), signal.SIGSTOP)


def _in_our_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == os.getpgrp()
    except ProcessLookupError:  # it has ended and was waited for
        return True


def _is_stopped(pid: int) -> bool:
    stat = procstat.read_stat(pid)
    return stat is not None and stat.state in {"T", "t"}
