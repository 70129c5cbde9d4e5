"""Taking signals one by one, and giving children the signal state that this process was given.

A signal that is blocked waits until `next_signal` takes it, so none is lost between two looks
and none interrupts a write to the registry.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# What is passed on to the command when somebody sends it to corral.
FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGWINCH,
        signal.SIGCONT,
        signal.SIGTSTP,
    }
)
WATCHED = FORWARDED | {signal.SIGCHLD}

# Python ignores these in itself; programs expect to be ended by them.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_FROM_TERMINAL = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH})
_SI_KERNEL = 0x80  # si_code of asm-generic/siginfo.h: the kernel sent it, as for a terminal
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05


class Inherited(NamedTuple):
    """The signals that were blocked, and of the watched ones those that were ignored."""

    blocked: frozenset[int]
    ignored: frozenset[int]


class Received(NamedTuple):
    """A signal that was taken. `by_terminal`: the whole foreground group got it as well.

    `sender`: the pid that sent it, 0 where the kernel did or it is not known.
    """

    number: signal.Signals
    by_terminal: bool
    sender: int = 0


def watch(signals: Iterable[signal.Signals] = WATCHED) -> Inherited:
    """Block `signals`, so that they wait for `next_signal`; what was in force before.

    SIGCHLD gets its default, or the kernel would throw the exit status of children away. Must be
    called in the main thread.
    """
    wanted = frozenset(signals)
    ignored = frozenset(s for s in wanted if signal.getsignal(s) is signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    if signal.SIGCHLD in ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return Inherited(frozenset(blocked), ignored)


def unwatch(inherited: Inherited) -> None:
    """Undo `watch` once there is nobody left to pass signals on to; what waited is dropped."""
    while signal.sigpending() & WATCHED:
        next_signal(WATCHED, 0)
    unblock(inherited)


def unblock(inherited: Inherited) -> None:
    """Undo `watch`; what waited takes effect now."""
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited.blocked)


def restore(inherited: Inherited) -> None:
    """Put back what `watch` found, as a program expects it that Python never touched."""
    for number in (*WATCHED, *_IGNORED_BY_PYTHON):
        ignored = number in inherited.ignored
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, inherited.blocked)


def next_signal(signals: frozenset[signal.Signals], seconds: float) -> Received | None:
    """Take one of the blocked `signals`, or None when none came within `seconds`."""
    if sys.platform == "darwin":
        return _poll(signals, seconds)
    info = signal.sigtimedwait(signals, max(0.0, seconds))
    if info is None:
        return None
    number, by_terminal = signal.Signals(info.si_signo), info.si_code == _SI_KERNEL
    return Received(number, by_terminal, info.si_pid)


def _poll(signals: frozenset[signal.Signals], seconds: float) -> Received | None:
    """The same where sigtimedwait is missing, which also hides who sent the signal."""
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not (pending := signal.sigpending() & signals):
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE)
    number = signal.Signals(signal.sigwait(pending))
    return Received(number, number in _FROM_TERMINAL and in_foreground())


def in_foreground() -> bool:
    """Whether this process's group is the foreground group of its terminal, if it has one."""
    terminal = controlling_terminal()
    if terminal is None:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # the terminal was hung up meanwhile
        return False
    finally:
        os.close(terminal)


def controlling_terminal() -> int | None:
    """A descriptor of the controlling terminal, or None without one."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:  # ENXIO: there is none
        return None
