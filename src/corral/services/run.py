"""Run a command as the acting owner's own: in the foreground, or detached under a supervisor."""

from __future__ import annotations

import time

from corral.decide.ready import Wanted
from corral.errors import CorralError, HeldError, RunError
from corral.kernel import identity
from corral.kernel.spawn import ExecError
from corral.services import announcing, engine_starts, environments, launching, running
from corral.services.starting import Result, detours, url
from corral.services.variables import LOOPBACK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.contracts import Clusters, Engines
    from corral.decide.ready import Seen
    from corral.services.context import Context
    from corral.services.launching import Launch, Request
    from corral.services.running import Service
    from corral.services.starting import TakeDown


def run(
    context: Context,
    request: Request,
    take_down: TakeDown,
    engines: Callable[[], Engines] | None = None,
    clusters: Callable[[], Clusters] | None = None,
) -> Result:
    """Start the command, and in the foreground wait for its end.

    `take_down` removes exactly the trees of the records it is given, for a service that was
    started but never became ready. `engines` and `clusters` lead to where a command may start
    something else than processes. Raises RunError (an ExecError has the exit status 126 or 127),
    HeldError for ports that somebody else uses, and what `launching.prepare` and
    `announcing.announce` raise.
    """
    launching.check(request)
    if request.detach and not request.name:
        request = request._replace(name=launching.generated_name(request.argv))
    known = _known(context, request.name)
    if known is not None:
        return _already(known, request)
    launch = launching.prepare(context, request)
    prepared, words = launch, (*launch.words, *_unfilled(launch))
    try:
        if engines is not None:
            launch, said = engine_starts.labelled(context, launch, engines)
            words += said
        announced = announcing.announce(context, launch, clusters)
        try:
            outcome = _start(context, announced.launch, take_down)
        except CorralError:
            announced.settle()
            raise
    except (ExecError, HeldError):
        # Nothing was started, so nobody needs what was claimed for it.
        if prepared.claimed:
            launching.give_back(context, prepared)
        raise
    words = (*words, *announced.words)
    if isinstance(outcome, Result):
        ended = outcome.exit_status is not None
        settled = announced.settle() if ended else ()
        return outcome._replace(words=(*words, *outcome.words, *settled))
    announced.settle()
    return _already(outcome, request)


def _unfilled(launch: Launch) -> tuple[str, ...]:
    """A word on a placeholder that no port was given for: the command gets it as it stands."""
    from corral.decide.placeholders import unfilled

    left = unfilled(launch.argv)
    if not left:
        return ()
    return (f"{left} was left as it stands: this start has no such port; give it --port NAME",)


def _start(context: Context, launch: Launch, take_down: TakeDown) -> Result | Service:
    if launch.request.detach:
        from corral.services import detached

        return detached.run(context, launch, take_down)
    from corral.services import foreground

    return foreground.run(context, launch, take_down)


def _known(context: Context, name: str) -> Service | None:
    environment = environments.find(context) if name else None
    if environment is None:
        return None
    with context.registry.read() as conn:
        found = running.named(conn, environment.id, name)
    return found if found.alive and not found.starting else None


def _already(known: Service, request: Request) -> Result:
    """What runs under the name, once it is ready if that was asked for."""
    running.refuse_unknown(known)
    detail = known.detail
    ports = {str(name): int(number) for name, number in detail.get("ports", {}).items()}
    host = str(detail.get("host", LOOPBACK))
    first = next(iter(ports.values()), None)
    seen = _wait_for_known(known, request, host, ports)
    main = known.main
    pid = int(dict(main.identity)["pid"]) if main is not None else None
    return Result(
        name=known.name,
        record=main.id if main is not None else "",
        pid=pid,
        ports=ports,
        url=None if first is None else url(host, first, seen),
        log=detail.get("log"),
        already=True,
        ready=None if seen is None else True,
        words=(_already_words(known.name, pid, detail, request.argv), *detours(host, seen)),
    )


def _already_words(
    name: str, pid: int | None, detail: dict[str, Any], argv: tuple[str, ...]
) -> str:
    from shlex import join

    from corral.decide.placeholders import Handed, fill

    said = f"{name} runs already" + (f" (pid {pid})" if pid is not None else "")
    runs = tuple(str(word) for word in detail.get("argv", ()))
    ports = tuple(Handed(str(n), int(p), None) for n, p in detail.get("ports", {}).items())
    same = runs in {argv, fill(argv, str(detail.get("host", LOOPBACK)), ports)}
    # {fd} was a number that nobody knows any more.
    known = runs and not any("{fd" in word for word in argv)
    other = f", which runs another command: {join(runs)}" if known and not same else ""
    return f"{said}{other}; {argv[0]} was not started. corral stop {name} ends it"


def _wait_for_known(
    known: Service, request: Request, host: str, ports: dict[str, int]
) -> Seen | None:
    if request.ready_seconds is None or not ports:
        return None
    from corral.services.readiness import Watch, wait_until_ready

    wanted = tuple(Wanted(name, number) for name, number in ports.items())
    roots = tuple(identity.decode_identity(record.identity).pid for record in known.alive)

    def ended(seconds: float) -> str:
        time.sleep(seconds)
        return "" if any(not running.is_gone(r) for r in known.alive) else "it ended"

    try:
        return wait_until_ready(Watch(wanted, host, roots), request.ready_seconds, ended)
    except RunError as error:
        raise RunError(f"{known.name} runs already: {error.message}") from error
