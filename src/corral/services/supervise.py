"""The supervisor of a detached service: a small process that stays until the whole tree is gone.

It is recorded before the service starts, is the parent of whatever loses its own parent in the
tree, holds the service's ports and keeps the log within its size. When the owner's anchor dies it
writes down at once when that was, so that the grace runs from then.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from functools import partial

from corral.errors import CorralError
from corral.kernel import children, clock, identity, own_mark, signals, spawn, subreaper
from corral.kernel.pidfd import Pinned, pin
from corral.model.owner import End
from corral.model.tuples import NamedTuple
from corral.services import service_log, service_records
from corral.services.supervisor_news import GO, Line
from corral.store import owners
from corral.store.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from corral.kernel.spawn import Command
    from corral.services.context import Context
    from corral.services.service_records import Ticket

TICK = 1.0
# A program that wipes its environment is known by its descent alone, and that is lost when its
# supervisor is killed: so what is new is looked at soon, then less and less often.
FIRST_TICK, _GROWTH = 0.05, 2.0
_CHUNK = 4096
# What ends a service: sent to its supervisor, it reaches the whole tree.
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Job(NamedTuple):
    """What a supervisor is to do. `held`: descriptors of the ports that it holds all its life.

    `command.output` is a descriptor of the log at `log`, which the supervisor keeps below `limit`.
    """

    command: Command
    ticket: Ticket
    log: str
    held: tuple[int, ...]
    limit: int = service_log.SIZE_LIMIT


def start(context: Context, job: Job, inherited: signals.Inherited) -> Line:
    """Fork a supervisor that waits for `Line.begin`; its first news is its pid.

    The signals of `signals.WATCHED` must be blocked. It is nobody's child but the system's, or
    the nearest subreaper's.
    """
    news_read, news_write = os.pipe()
    go_read, go_write = os.pipe()
    context.registry.close()
    between = spawn.fork()
    if between == 0:
        _leave_home(context, job, inherited, news_write, go_read)
    os.close(news_write)
    os.close(go_read)
    os.waitpid(between, 0)
    return Line(news_read, go_write)


def _leave_home(
    context: Context, job: Job, inherited: signals.Inherited, news: int, go: int
) -> NoReturn:
    """Fork once more and end, so that the supervisor is not the starting process's child.

    Never returns into the starting process's code, whatever happens.
    """
    status = 1
    try:
        if os.fork() == 0:
            _live(context, job, inherited, news, go)
        status = 0
    finally:
        os._exit(status)


def _live(context: Context, job: Job, inherited: signals.Inherited, news: int, go: int) -> None:
    """The supervisor's whole life."""
    os.setsid()
    log = job.command.output
    spawn.close_all_but({0, 1, 2, news, go, *job.held, *(() if log is None else (log,))})
    _detach_standard()
    fresh = context._replace(registry=Registry.open(context.state_dir), pid=os.getpid())
    _Supervisor(fresh, job, news).run(inherited, go)


def _detach_standard() -> None:
    sys.stdin = sys.stdout = sys.stderr = None  # nobody is there
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    if null > 2:  # noqa: PLR2004 (the three standard descriptors)
        os.close(null)


class _Supervisor:
    def __init__(self, context: Context, job: Job, news: int) -> None:
        self._context = context
        self._job = job
        self._ticket = job.ticket
        self._news = news
        self._main = 0
        self._status: int | None = None
        self._seen: frozenset[int] | None = frozenset()
        self._alone: frozenset[int] | None = None
        self._anchors: list[tuple[int, Pinned]] = []
        self._woken = self._wake = -1
        self._tick = FIRST_TICK

    def run(self, inherited: signals.Inherited, go: int) -> None:
        """Once let go, start the service and stay until nothing of it lives."""
        subreaper.become_subreaper()
        own_mark.wear(self._job.ticket.owner)
        self._tell("pid", str(os.getpid()))
        if os.read(go, 1) != GO:
            return
        os.close(go)
        if self._start(inherited):
            self._listen()
            self._record(self._watch_anchors)
            self._stay()
            self._record(lambda: service_records.close(self._context, self._ticket, self._status))

    def _start(self, inherited: signals.Inherited) -> bool:
        """Fork, record, execute; False, and no record is left, when any of it failed."""
        job = self._job
        try:
            waiting = spawn.fork_waiting(job.command, inherited)
        except CorralError as error:
            return self._give_up("refused", error.message)
        if job.command.output is not None:
            os.close(job.command.output)
        try:
            service_records.pin_service(self._context, job.ticket, identity.identify(waiting.pid))
        except CorralError as error:
            waiting.abandon()
            return self._give_up("refused", error.message)
        try:
            waiting.release()
        except spawn.ExecError as error:
            return self._give_up("failed", str(error.errno))
        self._main = waiting.pid
        self._seen = frozenset({waiting.pid})
        self._tell("started", str(waiting.pid))
        return True

    def _give_up(self, word: str, text: str) -> bool:
        self._record(lambda: service_records.drop(self._context, self._ids()))
        self._tell(word, text)
        return False

    @staticmethod
    def _record(write: Callable[[], object]) -> None:
        """Do without what cannot be written: the service matters more, and marks still prove it."""
        try:
            write()
        except CorralError:
            # A full disk, a gate that does not open: there is nobody here who could be told.
            return

    def _ids(self) -> tuple[str, str]:
        return (self._ticket.service, self._ticket.supervisor)

    def _tell(self, word: str, text: str = "") -> None:
        try:
            os.write(self._news, f"{word} {text}".replace("\n", " ").encode() + b"\n")
        except BrokenPipeError:
            # The starting process is gone or has heard enough.
            return

    def _listen(self) -> None:
        """Let signals wake `_stay`, each as a byte in a pipe."""
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        numbers = (*_ENDING, signal.SIGCHLD)
        for number in numbers:
            signal.signal(number, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)

    def _stay(self) -> None:
        """Until nothing of the start is left: no children means no descendants for a subreaper."""
        while self._take_changes():
            for number in self._wait():
                if number in _ENDING:
                    self._record(partial(self._pass_on, number))
            self._note_ends()
            self._keep_log_small()

    def _wait(self) -> bytes:
        """The numbers of the signals that came, after one came, an anchor died or time passed."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        for _, anchor in self._anchors:
            poll.register(anchor.fileno(), select.POLLIN)
        poll.poll(self._tick * 1000)
        self._tick = min(_GROWTH * self._tick, TICK)
        try:
            return os.read(self._woken, _CHUNK)
        except BlockingIOError:  # no signal
            return b""

    def _take_changes(self) -> bool:
        """Note what became of the children, record new ones; whether any is of this start."""
        changes, more = children.take_changes()
        for change in changes:
            if change.pid == self._main and change.status is not None:
                self._main, self._status = 0, change.status
                self._tell("exited", str(change.status))
        found = children.child_pids()
        settled = found is not None and found == self._seen and self._tick >= TICK
        if settled and self._alone is None:
            return more
        self._seen = found
        if more:
            self._record(partial(service_records.record_offspring, self._context, self._ticket))
        if self._main:
            return more
        self._record(partial(service_records.forget_ended, self._context, self._ticket))
        return more and self._is_needed(found)

    def _is_needed(self, found: frozenset[int] | None) -> bool:
        """Whether to stay: until two looks at the same children show that none is of this start.

        One look is not enough: what forks and ends all the time is in no look at all.
        """
        if self._has_offspring():
            self._alone = None
            return True
        seen_twice = found is not None and self._alone == found
        self._alone = found
        return not seen_twice

    def _has_offspring(self) -> bool:
        """Whether something that is left belongs to this start, and not to one within it."""
        try:
            return bool(service_records.offspring(self._context, self._ticket))
        except CorralError:
            # It cannot be told: then it must not be left alone.
            return True

    def _pass_on(self, number: int) -> None:
        """Send a signal to the whole tree, except to what is not this owner's."""
        for found in service_records.offspring(self._context, self._ticket):
            try:
                with pin(found) as process:
                    process.signal(number)
            except identity.ProcessGoneError:
                # It ended by itself in between.
                continue

    def _watch_anchors(self) -> None:
        """Pin the live anchors of the owner."""
        with self._context.registry.read() as conn:
            owner = owners.find(conn, self._ticket.owner)
        for epoch in owner.epochs if owner is not None else ():
            if epoch.anchor is None or epoch.released_at is not None:
                continue
            try:
                self._anchors.append((epoch.id, pin(epoch.anchor)))
            except identity.ProcessGoneError:
                # An earlier epoch of the owner; whoever looks first writes down its end.
                continue

    def _note_ends(self) -> None:
        for epoch, anchor in tuple(self._anchors):
            if not anchor.alive():
                self._anchors.remove((epoch, anchor))
                anchor.close()
                self._record(partial(self._note_end, epoch))

    def _note_end(self, epoch_id: int) -> None:
        end = End(clock.boottime(), clock.suspended(), clock.boot_id())
        with self._context.registry.write() as conn:
            owner = owners.find(conn, self._ticket.owner)
            for epoch in owner.epochs if owner is not None else ():
                if epoch.id == epoch_id and epoch.end is None and epoch.released_at is None:
                    owners.note_end(conn, epoch_id, end)

    def _keep_log_small(self) -> None:
        try:
            if os.stat(self._job.log).st_size > self._job.limit:
                service_log.cut_log(self._job.log, self._job.limit)
        except OSError:
            # The log was taken away, or the disk is full: the service goes on without.
            return
