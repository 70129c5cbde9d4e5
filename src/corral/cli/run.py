"""`corral run -- CMD...`: run a command as this worker's own, in the foreground or detached."""

from __future__ import annotations

from corral.cli.output import Answer, say
from corral.cli.surroundings import context_of
from corral.errors import UsageError
from corral.services.launching import HANDOFFS, Request
from corral.services.run import run as start
from corral.wiring import clusters, engines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.model.report import Report
    from corral.services.context import Context
    from corral.services.starting import Result

_EPILOG = """\
In CMD, {port} is the number of the first --port, {port.NAME} of the one of that name, {host} the
address to listen on, {fd} the descriptor of the first port's socket (--handoff fd).
The exit status is that of CMD; 127: it was not found, 126: it cannot be executed."""


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.usage = "corral run [options] -- CMD..."
    parser.epilog = _EPILOG
    parser.add_argument("--name", metavar="N", default="", help="what to call it: stop N, logs N")
    parser.add_argument(
        "--port", metavar="NAME", action="append", default=[], help="a port for it; repeatable"
    )
    parser.add_argument(
        "--handoff",
        choices=HANDOFFS,
        help="how it gets its ports: held until it listens (hold), as open sockets (fd), or "
        "with a short gap (release)",
    )
    parser.add_argument("--detach", action="store_true", help="return once it runs")
    parser.add_argument(
        "--wait-ready", metavar="S", help="wait up to S until it listens on its own ports"
    )
    parser.add_argument("argv", metavar="CMD", nargs="*", help="the command and its words")


def run(arguments: Namespace) -> Answer:
    """Start, wait for the end where it is in the foreground, and answer."""
    request = Request(
        argv=tuple(arguments.argv),
        name=arguments.name,
        ports=tuple(arguments.port),
        handoff=arguments.handoff,
        detach=arguments.detach,
        ready_seconds=_seconds(arguments.wait_ready),
    )
    context = context_of(arguments)
    result = start(
        context,
        request,
        lambda ids: _take_down(context, ids),
        lambda: engines(context),
        lambda: clusters(context),
    )
    if result.interrupted and not arguments.json:
        _end_of_interrupt(result)
    status = result.exit_status or 0
    return Answer(
        data_of(result),
        lambda: _text(result),
        words=tuple(f"corral: {word}" for word in result.words),
        status=status,
        result="ok" if status == 0 else "failed",
    )


def _end_of_interrupt(result: Result) -> None:
    """End as the command did, so that a shell ends the loop or script that this stands in."""
    import os
    import signal

    for word in result.words:
        say(f"corral: {word}")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from corral.decide.durations import parse_duration

    seconds = parse_duration(text, "--wait-ready")
    if seconds <= 0:
        raise UsageError(f"--wait-ready {text}: no time at all", remedy="give at least a second")
    return seconds


def _take_down(context: Context, ids: tuple[str, ...]) -> Report:
    """Remove what a start that failed has left; looked up by its records."""
    from corral.services.stopping import remove_started
    from corral.wiring import backends

    return remove_started(context, backends(context), ids)


def data_of(result: Result) -> dict[str, Any]:
    """The documented data."""
    return {
        "name": result.name or None,
        "record": result.record,
        "pid": result.pid,
        "ports": result.ports,
        "url": result.url,
        "log": result.log,
        "already": result.already,
        "ready": result.ready,
        "exit_status": result.exit_status,
    }


def _text(result: Result) -> str:
    """One line for a service that goes on; what ran in the foreground has said everything."""
    if result.exit_status is not None:
        return ""
    words = [result.name, f"pid {result.pid}"]
    words += [f"{name} {number}" for name, number in result.ports.items()]
    words += [result.url] if result.url else []
    words += [f"log {result.log}"] if result.log else []
    return "  ".join(words) + "\n"
