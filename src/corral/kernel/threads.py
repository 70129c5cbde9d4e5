"""Threads that wait for something on behalf of their process, and leave its signals alone."""

from __future__ import annotations

from _thread import start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def start_quiet_thread(work: Callable[[], object]) -> None:
    """Run `work` in a thread that no signal is ever delivered to.

    The kernel hands a signal for the process to any thread that does not block it. One that the
    others block, to take it when they are ready, would end the process or be lost there. Raises
    RuntimeError when there can be no more threads.
    """
    import signal

    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        start_new_thread(work, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
