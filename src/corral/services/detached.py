"""Start a detached service: its supervisor is recorded first, then the service, then it runs."""

from __future__ import annotations

import os

from corral.errors import CorralError, RunError
from corral.kernel import identity, signals, spawn
from corral.services import service_log, service_records, supervise
from corral.services.databases import own_directory
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
    from corral.decide.ready import Seen
    from corral.services.context import Context
    from corral.services.held_ports import Holding
    from corral.services.launching import Launch
    from corral.services.running import Service
    from corral.services.service_records import Ticket
    from corral.services.starting import TakeDown
    from corral.services.supervisor_news import Line

_IN_USE = ("eaddrinuse", "address already in use", "address in use", "port is already in use")


def run(context: Context, launch: Launch, take_down: TakeDown) -> Result | Service:
    """Start the service and return once it executes, or once it is ready if that was asked for.

    What runs under its name already is returned instead. Raises ExecError or RunError; then
    nothing of what was started is left.
    """
    directory = own_directory(context, launch.environment)
    log = service_log.log_path(directory, launch.request.name)
    wanted = ticket_for(launch, log=log)
    with hold(context, launch) as holding:
        taken = reserve(context, wanted)
        if taken is not None:
            return taken
        start = _Start(context, launch, holding, wanted, log)
        return start.finish(start.begin(), take_down)


class _Start:
    """One start, seen from the process that was asked for it."""

    def __init__(
        self, context: Context, launch: Launch, holding: Holding, wanted: Ticket, log: str
    ) -> None:
        self._context = context
        self._launch = launch
        self._holding = holding
        self._wanted = wanted
        self._log = log
        self._exited: int | None = None
        # Nobody interrupts a start halfway: what was asked for meanwhile takes effect afterwards.
        self._inherited = signals.watch()

    def begin(self) -> tuple[int, int]:
        """The pids of supervisor and service, once the command was executed."""
        try:
            self._line = self._fork()
            try:
                supervisor = self._record()
                self._line.begin()
                return supervisor, self._started()
            except CorralError:
                self._line.close()
                raise
        except CorralError:
            signals.unblock(self._inherited)
            service_records.drop(self._context, (self._wanted.service, self._wanted.supervisor))
            raise

    def _fork(self) -> Line:
        output = service_log.start_log(self._log)
        command = spawn.Command(
            self._launch.argv,
            self._launch.environ,
            self._holding.inherited,
            output=output,
            detached=True,
        )
        job = supervise.Job(command, self._wanted, self._log, self._holding.descriptors)
        try:
            return supervise.start(self._context, job, self._inherited)
        finally:
            os.close(output)

    def _record(self) -> int:
        """Record the supervisor, which waits for that; its pid."""
        news = self._line.hear()
        if news is None or news.word != "pid":
            raise RunError("the supervisor ended before it started anything")
        found = identity.identify(int(news.text))
        service_records.pin_supervisor(self._context, self._wanted, found)
        return found.pid

    def _started(self) -> int:
        news = self._line.hear()
        if news is None or news.word == "ended":
            raise RunError("the supervisor ended before it started anything")
        if news.word == "failed":
            raise spawn.ExecError(self._launch.argv[0], int(news.text))
        if news.word == "refused":
            raise RunError(news.text)
        return int(news.text)

    def finish(self, pids: tuple[int, int], take_down: TakeDown) -> Result:
        """Wait until it is ready if that was asked for; taken down again when it never is."""
        supervisor, pid = pids
        try:
            signals.unblock(self._inherited)
            seen = self._wait(supervisor)
        except RunError as error:
            output = service_log.last_lines(self._log)
            told = RunError(_with_output(error.message, output), remedy=self._remedy(output))
            raise undo(take_down, self._wanted, told) from error
        except KeyboardInterrupt:
            # Whoever gives up waiting for a start does not want what was started.
            undo(take_down, self._wanted, RunError("interrupted"))
            raise
        finally:
            self._line.close()
        return self._result(pid, seen)

    def _wait(self, supervisor: int) -> Seen | None:
        seconds = self._launch.request.ready_seconds
        if seconds is None:
            return None
        from corral.services.readiness import Watch, wait_until_ready

        watch = Watch(
            wanted_ports(self._launch),
            self._launch.host,
            (supervisor,),
            also_ours=self._launch.also_ours,
            accepts=self._holding.accepts,
        )
        return wait_until_ready(watch, seconds, self._ended)

    def _ended(self, seconds: float) -> str:
        """How the service ended within `seconds`; a start script may end well and leave it."""
        news = self._line.hear(seconds)
        if news is None:
            return ""
        if news.word == "exited":
            self._exited = int(news.text)
            return f"{self._name} ended with exit status {self._exited}" if self._exited else ""
        if news.word == "ended":
            if self._exited is None:
                return f"the supervisor of {self._name} was ended"
            return f"{self._name} ended with exit status {self._exited}"
        return ""

    @property
    def _name(self) -> str:
        return self._launch.request.name

    def _remedy(self, output: str) -> str:
        """What to do when a server cannot take its port in the way that was chosen."""
        ways = {port.handoff for port in self._launch.ports}
        in_use = any(words in output.lower() for words in _IN_USE)
        if in_use and "hold" in ways:
            return (
                "corral holds the port, and this server binds without SO_REUSEADDR: use "
                "--handoff release, or --handoff fd if it can take a socket"
            )
        if in_use and "release" in ways:
            return (
                "connections of an earlier server may keep the port for a minute (TIME_WAIT) from "
                "a server without SO_REUSEADDR: try again then, or use --handoff fd"
            )
        if "fd" in ways:
            return (
                "if the server does not take the socket (LISTEN_FDS, or {fd} in the command; a "
                "shell or npm in between must exec it), use --handoff hold or release"
            )
        return f"the whole log: {self._log}"

    def _result(self, pid: int, seen: Seen | None) -> Result:
        launch = self._launch
        first = launch.ports[0] if launch.ports else None
        return Result(
            name=self._name,
            record=self._wanted.service,
            pid=pid,
            ports={port.name: port.number for port in launch.ports},
            url=None if first is None else url(launch.host, first.number, seen),
            log=self._log,
            ready=None if seen is None else True,
            words=detours(launch.host, seen),
        )


def _with_output(message: str, output: str) -> str:
    if not output.strip():
        return f"{message}; it wrote nothing"
    return f"{message}; its last output:\n{output}"
