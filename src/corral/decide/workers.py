"""Known workers: the variables that carry their session ids, and the programs that anchor them.

One table. Sources: the agents' and CI systems' own documentation of their child environments.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corral.model.process import ProcessRow


class Worker(NamedTuple):
    """One agent or CI system.

    `session`: variables that together name a session (all must be set). `pid`: the variable that
    holds the agent's own process id. `programs`: file names of its executables or scripts.
    `paths`: parts of a script's path that give it away where an interpreter runs it.
    `converses`: one process of it leads one conversation at a time, so a new session id in the
    same process goes on with what the former one had. A CI runner's process serves many jobs.
    `stays`: that process itself outlives its jobs, so what ends with one is the child it made for
    the job's scripts.
    """

    name: str
    session: tuple[str, ...]
    pid: str = ""
    programs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    converses: bool = True
    stays: bool = False


WORKERS: tuple[Worker, ...] = (
    Worker("claude", ("CLAUDE_CODE_SESSION_ID",), "CLAUDE_PID", ("claude",), ("/claude-code/",)),
    Worker("claude", ("CLAUDE_SESSION_ID",), "CLAUDE_PID"),
    Worker("codex", ("CODEX_SESSION_ID",), "CODEX_PID", ("codex",), ("/@openai/codex/",)),
    Worker("codex", ("CODEX_THREAD_ID",), "CODEX_PID"),
    Worker(
        "github",
        ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB", "RUNNER_NAME"),
        programs=("Runner.Worker",),
        converses=False,
    ),
    Worker("gitlab", ("CI_JOB_ID",), programs=("gitlab-runner",), converses=False, stays=True),
    Worker("buildkite", ("BUILDKITE_JOB_ID",), programs=("buildkite-agent",), converses=False),
    Worker("gemini", (), programs=("gemini",), paths=("/gemini-cli/",)),
    Worker("cursor", (), programs=("cursor-agent",)),
    Worker("opencode", (), programs=("opencode",)),
    Worker("aider", (), programs=("aider",)),
    Worker("amp", (), programs=("amp",), paths=("/@sourcegraph/amp/",)),
    Worker("goose", (), programs=("goose",)),
    Worker("copilot", (), programs=("copilot",), paths=("/@github/copilot/",)),
    Worker("jenkins", (), programs=("jenkins-agent",), paths=("/remoting.jar",), converses=False),
)
CONVERSING = frozenset(worker.name for worker in WORKERS if worker.converses)
_STAYING = frozenset(worker.name for worker in WORKERS if worker.stays)
_INTERPRETERS = ("node", "bun", "deno", "python", "java")


class Inherited(NamedTuple):
    """A session id found in the variables, with the worker that set it."""

    worker: str
    session: str


def inherited_sessions(
    environ: Mapping[str, str], above: Sequence[ProcessRow]
) -> tuple[Inherited, ...]:
    """The agents' and CI systems' session ids in a caller's variables, the nearest worker's first.

    `above`: the caller's ancestors, nearest first. A worker inside another one inherits the outer
    one's variables as well; the one that stands nearest above the caller is meant. Workers that do
    not stand there come last, in the order of the table.
    """
    found: dict[str, Inherited] = {}
    for worker in WORKERS:
        parts = [environ.get(name, "").strip() for name in worker.session]
        if parts and all(parts):
            session = parts[0] if len(parts) == 1 else f"{worker.name}-" + "/".join(parts)
            found.setdefault(worker.name, Inherited(worker.name, session))
    places = {name: _place(environ, above, name) for name in found}
    return tuple(sorted(found.values(), key=lambda each: places[each.worker]))


def _place(environ: Mapping[str, str], above: Sequence[ProcessRow], worker: str) -> int:
    nearest = find_anchor(environ, above, worker)
    if nearest is None or nearest.worker != worker:
        return len(above)
    return next(place for place, row in enumerate(above) if row.pid == nearest.pid)


def worker_of(row: ProcessRow) -> str | None:
    """The known worker that a process is, or None. Never a shell or a terminal."""
    argv = row.argv or ()
    names = {row.exe.rsplit("/", 1)[-1], row.comm}
    script = ""
    base = row.exe.rsplit("/", 1)[-1] or (argv[0].rsplit("/", 1)[-1] if argv else "")
    if base.startswith(_INTERPRETERS):
        script = next((a for a in argv[1:] if not a.startswith("-")), "")
        names.add(script.rsplit("/", 1)[-1])
    elif argv:
        names.add(argv[0].rsplit("/", 1)[-1])
    for worker in WORKERS:
        if names.intersection(worker.programs) or any(part in script for part in worker.paths):
            return worker.name
    return None


class FoundAnchor(NamedTuple):
    """The process whose death ends an epoch, and how it was found."""

    pid: int
    worker: str


def agent_pid(environ: Mapping[str, str], worker: str) -> int:
    """What a worker's own variable says its process id is; 0 where it says nothing."""
    for each in WORKERS:
        value = environ.get(each.pid, "") if each.pid and each.name == worker else ""
        if value.isascii() and value.isdigit():
            return int(value)
    return 0


def find_anchor(
    environ: Mapping[str, str], above: Iterable[ProcessRow], worker: str = ""
) -> FoundAnchor | None:
    """The nearest known worker above the caller, or None. Never a shell or a terminal by guess.

    `above`: the caller's ancestors, nearest first. An ancestor is known by a worker's own pid
    variable or by its program. Where a `worker` is named, one of that kind comes first. A pid
    variable that names no ancestor counts for nothing: it was inherited from elsewhere. For a
    worker that stays, its child above the caller is meant.
    """
    named = {agent_pid(environ, each.name): each.name for each in WORKERS}
    nearest, below = None, 0
    for row in above:
        name = (named.get(row.pid) or worker_of(row)) if row.pid > 1 else None
        if name is not None:
            found = FoundAnchor(below if below and name in _STAYING else row.pid, name)
            if name == worker:
                return found
            nearest = nearest or found
        below = row.pid
    return nearest
