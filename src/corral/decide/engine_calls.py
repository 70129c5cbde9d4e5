"""Command lines of container engines and compose: what they start, and how it is labelled.

Only what stands before and in the subcommand is read; options of the subcommand itself are left
to the tool. A global option that is not known could hide the subcommand, so the call is then
unclear, and nothing is changed.
"""

from __future__ import annotations

from corral.decide.localstack import is_localstack
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DOCKER_VALUES = frozenset(
    {"--config", "-c", "--context", "-H", "--host", "-l", "--log-level"}
    | {"--tlscacert", "--tlscert", "--tlskey"}
)
_PODMAN_VALUES = frozenset(
    {"--cgroup-manager", "--config", "--conmon", "-c", "--connection", "--cdi-spec-dir"}
    | {"--db-backend", "--default-mounts-file", "--events-backend", "--hooks-dir", "--identity"}
    | {"--imagestore", "--log-level", "--module", "--network-cmd-path", "--network-config-dir"}
    | {"--out", "--registries-conf", "--root", "--runroot", "--runtime", "--runtime-flag"}
    | {"--ssh", "--storage-driver", "--storage-opt", "--tmpdir", "--url", "--volumepath"}
)
_NERDCTL_VALUES = frozenset(
    {"-a", "--address", "-H", "--host", "-n", "--namespace", "--snapshotter", "--storage-driver"}
    | {"--bridge-ip", "--cdi-spec-dirs", "--cgroup-manager", "--cni-netconfpath", "--cni-path"}
    | {"--data-root", "--host-gateway-ip", "--hosts-dir", "--userns-remap"}
)
_COMPOSE_VALUES = frozenset(
    {"--ansi", "--env-file", "-f", "--file", "--parallel", "--profile", "--progress"}
    | {"--project-directory", "-p", "--project-name", "--workdir"}
)
_SWITCHES = {
    "docker": frozenset({"-D", "--debug", "--tls", "--tlsverify"}),
    "podman": frozenset({"-r", "--remote", "--noout", "--syslog", "--trace", "--transient-store"}),
    "nerdctl": frozenset(
        {"--debug", "--debug-full", "--experimental", "--insecure-registry", "--kube-hide-dupe"}
    ),
    "container": frozenset({"--debug"}),
    "compose": frozenset({"--all-resources", "--compatibility", "--dry-run", "--verbose"}),
}
_VALUES = {
    "docker": _DOCKER_VALUES,
    "podman": _PODMAN_VALUES,
    "nerdctl": _NERDCTL_VALUES,
    "container": frozenset(),
    "compose": _COMPOSE_VALUES,
}
_HOSTS = {"docker": ("-H", "--host"), "podman": ("--url",)}
_CONTEXTS = {"docker": ("-c", "--context"), "podman": ("-c", "--connection")}
_ENGINES = frozenset({"docker", "podman", "nerdctl", "container"})
_PROJECTS = ("-p", "--project-name")
_COMPOSE_PROGRAMS = {"docker-compose": "docker", "podman-compose": "podman"}
# Subcommands that bring containers, networks or volumes into being, or to life again.
_STARTING = frozenset({"create", "restart", "run", "scale", "start", "up", "watch"})
_CREATING = {
    ("run",): "container",
    ("create",): "container",
    ("container", "run"): "container",
    ("container", "create"): "container",
    ("network", "create"): "network",
    ("volume", "create"): "volume",
}
_GROUPS = frozenset({"container", "network", "volume"})


class EngineCall(NamedTuple):
    """What a command line is about to start.

    `tool`: docker, podman, nerdctl or Apple's container. `creates`: container, network, volume,
    compose, or "" for what starts nothing. `at`: where options of the subcommand go. `host`,
    `context`: which engine is named. `project`: the compose project that is named, "" if compose
    finds it by itself. `options`: the tool's own options, as they stand. `unclear`: the option
    that is not understood, or "".
    """

    tool: str
    creates: str = ""
    at: int = 0
    host: str = ""
    context: str = ""
    project: str = ""
    options: tuple[str, ...] = ()
    unclear: str = ""


class _Options(NamedTuple):
    """Global options: the index after them, and the last value of each that takes one."""

    end: int
    values: Mapping[str, str]
    unclear: str = ""


def read_engine_call(argv: Sequence[str]) -> EngineCall | None:
    """What the command line starts; None for any other program."""
    program = argv[0].rpartition("/")[2] if argv else ""
    if program in _COMPOSE_PROGRAMS:
        return _compose(EngineCall(_COMPOSE_PROGRAMS[program]), argv, 1)
    if program not in _ENGINES:
        return None
    options = _read(argv, 1, program)
    call = EngineCall(
        program,
        host=_last(options.values, _HOSTS.get(program, ())),
        context=_last(options.values, _CONTEXTS.get(program, ())),
        options=tuple(argv[1 : options.end]),
        unclear=options.unclear,
    )
    if call.unclear:
        return call
    words = argv[options.end : options.end + 2]
    if words and words[0] == "compose":
        return _compose(call, argv, options.end + 1)
    length = 2 if words and words[0] in _GROUPS else 1
    creates = _CREATING.get(tuple(words[:length]), "")
    return call._replace(creates=creates, at=options.end + length) if creates else call


def _compose(call: EngineCall, argv: Sequence[str], start: int) -> EngineCall:
    options = _read(argv, start, "compose")
    if options.unclear:
        return call._replace(unclear=options.unclear)
    project = _last(options.values, _PROJECTS)
    starts = options.end < len(argv) and argv[options.end] in _STARTING
    return call._replace(
        creates="compose" if starts else "", at=options.end + 1 if starts else 0, project=project
    )


def _read(argv: Sequence[str], start: int, tool: str) -> _Options:
    """Read options up to the first word that is none."""
    values: dict[str, str] = {}
    at = start
    while at < len(argv) and argv[at].startswith("-") and len(argv[at]) > 1:
        word = argv[at]
        name, equals, value = word.partition("=")
        at += 1
        if name.startswith("--"):
            if equals:
                values[name] = value
            elif name in _VALUES[tool]:
                values[name] = argv[at] if at < len(argv) else ""
                at += 1
            elif name not in _SWITCHES[tool]:
                return _Options(at, values, name)
            continue
        taken = _cluster(word, _VALUES[tool], _SWITCHES[tool])
        if taken is None:
            return _Options(at, values, word)
        flag, attached = taken
        if flag and not attached:
            values[flag] = argv[at] if at < len(argv) else ""
            at += 1
        elif flag:
            values[flag] = attached
    return _Options(at, values)


def _cluster(word: str, valued: Iterable[str], switches: Iterable[str]) -> tuple[str, str] | None:
    """The option with a value that ends a cluster of one-letter options, and what is attached.

    ("", "") where there is none, None where a letter is not known.
    """
    for place, letter in enumerate(word[1:], start=2):
        flag = f"-{letter}"
        if flag in valued:
            return flag, word[place:].removeprefix("=")
        if flag not in switches:
            return None
    return "", ""


def _last(values: Mapping[str, str], names: Iterable[str]) -> str:
    return next((values[name] for name in reversed(tuple(values)) if name in names), "")


def label_arguments(argv: Sequence[str], labels: Mapping[str, str]) -> tuple[str, ...]:
    """The command line with these labels on what it creates; unchanged if it creates nothing.

    A label that the user gives comes later, and so wins. Compose takes no labels: what it starts
    is known by its project. LocalStack is told to label what it starts, unless it is told already.
    """
    call = read_engine_call(argv)
    if call is None or call.unclear or call.creates in {"", "compose"}:
        return tuple(argv)
    pairs = [f"{key}={value}" for key, value in labels.items()]
    added = [word for pair in pairs for word in ("--label", pair)]
    rest = argv[call.at :]
    told = any("LAMBDA_DOCKER_FLAGS" in word for word in rest)
    if call.creates == "container" and not told and any(map(is_localstack, rest)):
        flags = " ".join(f"-l {pair}" for pair in pairs)
        added += ["--env", f"LAMBDA_DOCKER_FLAGS={flags}"]
    return (*argv[: call.at], *added, *rest)
