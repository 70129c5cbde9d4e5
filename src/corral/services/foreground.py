"""Run a command in the foreground: recorded before it runs, waited for, its offspring recorded."""

from __future__ import annotations

import time
from contextlib import contextmanager

from corral.errors import CorralError, RunError
from corral.kernel import children, identity, own_mark, signals, spawn, subreaper
from corral.kernel.pidfd import pin
from corral.services import job_control, service_records
from corral.services.held_ports import hold
from corral.services.starting import (
    Result,
    detours,
    reserve,
    ticket_for,
    undo,
    url,
    wanted_ports,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from corral.decide.ready import Seen
    from corral.kernel.pidfd import Pinned
    from corral.kernel.signals import Inherited
    from corral.services.context import Context
    from corral.services.held_ports import Holding
    from corral.services.launching import Launch
    from corral.services.readiness import Watch
    from corral.services.running import Service
    from corral.services.service_records import Ticket
    from corral.services.starting import TakeDown

_AT_ONCE = 10.0  # seconds within which a failing server has probably failed to start


def run(context: Context, launch: Launch, take_down: TakeDown) -> Result | Service:
    """Run the command to its end, or what runs under its name already.

    What it leaves behind is recorded before this returns. Raises ExecError when the command cannot
    be executed and RunError when it was to become ready and did not; it is taken down then.
    """
    wanted = ticket_for(launch)
    with hold(context, launch) as holding:
        taken = reserve(context, wanted)
        if taken is not None:
            return taken
        with _signals_waiting() as inherited:
            subreaper.become_subreaper()
            own_mark.wear(wanted.owner)
            child = _start(context, launch, holding, wanted, inherited)
            with child:
                return _Run(context, launch, holding, wanted, child).finish(take_down)


@contextmanager
def _signals_waiting() -> Iterator[Inherited]:
    inherited = signals.watch()
    try:
        yield inherited
    finally:
        signals.unwatch(inherited)


def _start(
    context: Context, launch: Launch, holding: Holding, wanted: Ticket, inherited: Inherited
) -> Pinned:
    """Fork, record, execute: in this order, so that a kill leaves nothing or a recorded process."""
    command = spawn.Command(
        launch.argv,
        launch.environ,
        holding.inherited,
        death_signal=launch.request.death_signal,
    )
    try:
        waiting = spawn.fork_waiting(command, inherited)
        try:
            found = identity.identify(waiting.pid)
            child = pin(found)
            service_records.pin_service(context, wanted, found)
        except CorralError:
            waiting.abandon()
            raise
        waiting.release()
    except CorralError:
        service_records.drop(context, (wanted.service,))
        raise
    return child


class _Run:
    """A command that runs, and what is to be done until its end and after it."""

    def __init__(
        self,
        context: Context,
        launch: Launch,
        holding: Holding,
        wanted: Ticket,
        child: Pinned,
    ) -> None:
        self._context = context
        self._launch = launch
        self._holding = holding
        self._wanted = wanted
        self._child = child
        self._words: list[str] = []
        self._seen: Seen | None = None
        self._watch = self._new_watch()
        self._began = time.monotonic()

    def _new_watch(self) -> Watch | None:
        if self._launch.request.ready_seconds is None:
            return None
        import os

        from corral.services.readiness import Watch

        launch = self._launch
        return Watch(
            wanted_ports(launch),
            launch.host,
            (os.getpid(),),
            also_ours=launch.also_ours,
            accepts=self._holding.accepts,
        )

    def finish(self, take_down: TakeDown) -> Result:
        try:
            ended = job_control.wait_for(
                self._child,
                tick=self._record_offspring,
                look=None if self._watch is None else self._look,
            )
        except RunError as error:
            raise undo(take_down, self._wanted, error) from error
        finally:
            self._record_offspring()
            self._forget()
        self._hint(ended.status)
        return self._result(ended)

    def _look(self) -> float | None:
        """Look for the ports; seconds until the next look, None once they listen."""
        watch, limit = self._watch, self._launch.request.ready_seconds
        if watch is None or limit is None:
            return None
        self._seen = watch.ready()
        if self._seen is not None:
            self._words += detours(self._launch.host, self._seen)
            return None
        if time.monotonic() - self._began > limit:
            raise RunError(watch.never(limit))
        return watch.pause

    def _record_offspring(self) -> None:
        try:
            service_records.record_offspring(self._context, self._wanted)
        except CorralError as error:
            # The command's own end must still be reported; the mark still proves what is left.
            self._words.append(f"what the command left behind is not recorded: {error.message}")

    def _forget(self) -> None:
        try:
            service_records.forget_ended(self._context, self._wanted)
        except CorralError as error:
            # A record of an ended process harms nobody: the next reap drops it.
            self._words.append(f"its record could not be dropped: {error.message}")

    def _hint(self, status: int) -> None:
        soon = time.monotonic() - self._began < _AT_ONCE
        ended_by_itself = 0 < status < children.SIGNAL_BASE
        if ended_by_itself and soon and self._holding.ports and self._seen is None:
            ports = ", ".join(str(number) for number in self._holding.ports)
            self._words.append(
                f"corral held port {ports} for it: if it said that the address is in use, it "
                "binds without SO_REUSEADDR and needs --handoff release (or fd)"
            )

    def _result(self, ended: job_control.Ended) -> Result:
        launch = self._launch
        first = launch.ports[0] if launch.ports else None
        return Result(
            name=self._wanted.name,
            record=self._wanted.service,
            pid=self._child.identity.pid,
            ports={port.name: port.number for port in launch.ports},
            url=None if first is None else url(launch.host, first.number, self._seen),
            log=None,
            ready=None if self._watch is None else self._seen is not None,
            exit_status=ended.status,
            interrupted=ended.interrupted,
            words=tuple(self._words),
        )
