"""`corral-hook claude|codex`: an agent's lifecycle events, as JSON on stdin.

An entry point of its own, light, since it runs in every session. It never blocks or fails the
agent: whatever goes wrong is said on stderr, and the exit status is 0. At a session's end it only
writes down that it was called, hands over to a process of its own, and is gone; what the agent
waits for imports neither JSON nor SQLite.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.model.hook import Caller, Payload
    from corral.services.context import Context

AGENTS = ("claude", "codex")
_USAGE = "usage: corral-hook claude|codex (the event as JSON on stdin)\n"
# The other half of a session's end: what the hook heard is in the spool, or could not be written.
_WRITTEN, _UNWRITTEN = _HALVES = ("--finish", "--write-and-finish")
_LIMIT = 1 << 20
_END_LIMIT = 1 << 14  # of a session's end: a few short fields
_PATIENCE = 0.8  # seconds for a payload whose writer does not close the pipe
_SILENCE = 0.1  # seconds after what could be all of it
_CHUNK = 1 << 16
# The reap is not in a hurry, and must not slow down the hooks of other sessions that end. Once it
# holds locks that others wait for, it is like any other program.
_NICE, _LAST = 10, 19
_OWN = ("CORRAL_OWNER", "CORRAL_SESSION", "CORRAL_KEEP")


def main(argv: Sequence[str] | None = None) -> int:
    """Handle one event; always 0, but 2 for an agent that is not known. `--help` says how."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None and not set(words) & {*_HALVES}:
        from corral.cli.quick import live_quickly

        return live_quickly(lambda: main(words))
    from corral.cli.standard import ensure_open

    ensure_open()
    if len(words) != 1 or words[0] not in (*AGENTS, *_HALVES):
        helped = words in (["--help"], ["-h"])
        _write(1 if helped else 2, _USAGE)
        return 0 if helped else 2
    try:
        _handle(words[0], _read_payload())
    except Exception as error:  # noqa: BLE001 (the outermost edge: the agent must go on)
        _complain(error)
    return 0


def _handle(agent: str, content: bytes) -> None:
    if agent in _HALVES:
        _finish(content, written=agent == _WRITTEN)
    elif b"SessionEnd" in content and b"SessionStart" not in content:
        _end(agent, content)
    else:
        _understand(agent, content)


def _complain(error: Exception) -> None:
    _write(2, f"corral-hook: {str(error) or type(error).__name__}\n")


def _write(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode("utf-8", "backslashreplace"))
    except OSError:
        # The agent does not listen any more.
        return


def _read_payload() -> bytes:
    """What stands on stdin: up to its end, or to a silence after what could be all of it.

    More than 1 MiB is read, so that the writer is not cut off, and forgotten.
    """
    import select

    data, end = b"", time.monotonic() + _PATIENCE
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        left = end - time.monotonic()
        seconds = min(left, _SILENCE) if data.rstrip().endswith(b"}") else left
        if seconds <= 0 or not poll.poll(seconds * 1000):
            return data
        try:
            chunk = os.read(0, _CHUNK)
        except OSError:
            # A directory, or a pipe that can only be written to: nothing was said.
            return data
        if not chunk:
            return data
        if len(data) < _LIMIT:
            data += chunk


def _state_dir() -> str:
    from corral.store import statedir

    return statedir.locate(os.environ, os.path.expanduser("~"))


def _end(agent: str, content: bytes) -> None:
    """Write down that this session's end was told, and hand over."""
    from corral.errors import CorralError
    from corral.model.hook import Heard
    from corral.store import hook_entry

    heard = Heard(agent, time.time(), content[:_END_LIMIT], _caller(agent))
    half = _WRITTEN
    try:
        hook_entry.leave(_state_dir(), heard)
    except (CorralError, OSError) as error:
        # A full disk, a foreign state directory. The other half tries again for a while.
        _complain(error)
        half = _UNWRITTEN
    _hand_over(half, hook_entry.encode(heard))


def _caller(agent: str) -> Caller:
    from corral.decide.workers import agent_pid
    from corral.errors import EnumerationError
    from corral.kernel import clock, procstat
    from corral.model.hook import Caller

    try:
        above, namespace = procstat.lineage(os.getpid()), procstat.own_namespace()
        return Caller(above, clock.boot_id(), namespace, agent_pid(os.environ, agent))
    except EnumerationError:
        # Without /proc nobody can tell whose end this is.
        return Caller((), "unknown", 0)


def _hand_over(half: str, entry: bytes) -> None:
    """Start the other half in a process of its own, which nothing of the agent's holds or marks.

    CORRAL_KEEP: where the agent itself runs below another worker, that one's end must not take
    it. -P: the current directory, which is the agent's, is nothing to import from.
    """
    environ = {k: v for k, v in os.environ.items() if not (k in _OWN or k.startswith("GIT_"))}
    environ["CORRAL_KEEP"] = "1"
    argv = [sys.executable, "-P", "-m", "corral.cli.hook", half]
    reading, writing = os.pipe()
    os.write(writing, entry)
    if os.fork() == 0:
        try:
            _leave_the_agent(reading)
            os.execve(sys.executable, argv, environ)  # noqa: S606 (corral itself)
        finally:
            os._exit(1)


def _leave_the_agent(reading: int) -> None:
    """In the child: a session of its own, last in the queue, without any of the agent's files."""
    os.setsid()
    _step_back()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor, standard in ((reading, 0), (null, 1), (null, 2)):
        os.dup2(descriptor, standard)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _step_back() -> None:
    """Let the hooks of other sessions that end go first."""
    os.nice(_NICE)
    _share(_LAST)


def _share(nice: int) -> None:
    """Change this session's share of a processor: 0 is as much as any, 19 next to nothing.

    Linux gives each session the same share, and only within one it counts how nice a process is
    (see sched(7), autogroup). The share can be taken back, which a process's own niceness cannot.
    """
    try:
        descriptor = os.open("/proc/self/autogroup", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(nice).encode())
        finally:
            os.close(descriptor)
    except OSError:
        # Another system, or a kernel without it; or it was changed a moment ago.
        return


def _understand(agent: str, content: bytes) -> None:
    from corral.decide.hooks import END, START, payload_in
    from corral.services import hooks

    payload = payload_in(content)
    if payload is not None and payload.event == END:
        _end(agent, content)
    elif payload is None or payload.event != START:
        if payload is None:
            _write(2, "corral-hook: the event is not understood, so nothing was changed\n")
        hooks.noted(_context("/", None)[0], payload, agent)
    else:
        _start(agent, payload)


def _context(directory: str, session: str | None) -> tuple[Context, str]:
    """The context of a call, and what is wrong with the configuration there."""
    from corral.services.context import Context
    from corral.services.hooks import settings_of
    from corral.store.registry import Registry

    state_dir = _state_dir()
    real = os.path.realpath(directory)
    settings, fault = settings_of(real, os.environ)
    registry = Registry.open(state_dir)
    return Context(real, session, os.environ, state_dir, registry, settings, os.getpid()), fault


def _start(agent: str, payload: Payload) -> None:
    from corral.services import hooks
    from corral.wiring import run_program

    context, fault = _context(payload.directory, payload.session)
    if not os.path.isdir(context.directory):
        hooks.noted(context, payload._replace(why="its directory is not there"), agent)
        return
    welcome = hooks.started(context, payload, agent, run_program, fault)
    path = os.environ.get("CLAUDE_ENV_FILE", "")
    if path:
        from corral.services.shell_file import add_exports

        add_exports(path, welcome.variables)
    _write(1, "".join(f"{line}\n" for line in welcome.lines))


def _finish(entry: bytes, *, written: bool) -> None:
    from corral.decide.hooks import payload_in
    from corral.services import hooks, reaping
    from corral.store import spooled
    from corral.wiring import backends

    _share(0)
    heard = spooled.decode_heard(entry)
    payload = payload_in(heard.content)
    context, fault = _context(payload.directory if payload is not None else "/", None)
    if fault and payload is not None:
        # Which programs the project protects is not known, so nothing can be taken down.
        reason = f"nothing is taken down: {fault}"
        hooks.noted(context, payload._replace(why=reason), heard.agent)
        return
    reaping.finish(context, backends, heard, payload, written=written)


if __name__ == "__main__":
    sys.exit(main())
