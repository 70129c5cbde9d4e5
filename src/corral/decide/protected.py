"""Programs that are only ever shown: recognised by executable and arguments, never signalled.

The names are in `programs`; `[protect] programs` adds to them. A process is known by the file name
of its executable, by its first argument, by its command name, and, where an interpreter runs it,
by its script. No argument takes a program out of the table but these, each with its reason:

- a browser with `--headless` is a test's, not a person's; its parts go with their browser;
- ssh without a forwarding, podman without `service`, qemu without a runtime's machine in its
  arguments, java, node, dotnet, git and adb without a daemon in theirs are anybody's programs.
"""

from __future__ import annotations

from corral.decide.programs import (
    BROWSER,
    BROWSERS,
    BUILD,
    CATEGORIES,
    EDITOR,
    PARTS,
    PREFIXES,
    RUNTIME,
    SHARED,
    TUNNEL,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from corral.model.process import ProcessRow

    Names = Collection[str]
    Argv = tuple[str, ...]

CONFIGURED = "program protected by the configuration"
# The kernel cuts a command name to 15 bytes.
_COMM_LIMIT = 15
_CUT: dict[str, str] = {
    name[:_COMM_LIMIT]: category for name, category in CATEGORIES.items() if len(name) > _COMM_LIMIT
}
_PREFIXES = tuple(PREFIXES)
_SHELLS = frozenset({"bash", "dash", "sh", "bun", "deno"})
_INTERPRETERS = ("python", "pypy", "perl", "ruby", "node")

# Options of ssh(1) that take a value, which may stand in the next argument.
_SSH_VALUES = "BbcDEeFIiJLlmOoPpQRSWw"
_SSH_FORWARDS = "DLMNRWfw"
_SSH_SETTINGS = ("localforward", "remoteforward", "dynamicforward", "tunnel", "controlmaster")
_MACHINES = ("lima", "colima", "podman", "docker", "rancher-desktop", "orbstack", "multipass")
_JAVA: dict[str, str] = {
    "org.gradle.launcher.daemon": BUILD,
    "GradleDaemon": BUILD,
    "KotlinCompileDaemon": BUILD,
    "nailgun.NGServer": BUILD,
    "com.facebook.buck": BUILD,
    "bloop.": BUILD,
    "mill.runner.MillServerMain": BUILD,
    "A-server.jar": BUILD,
    "com.intellij": EDITOR,
    "org.jetbrains": EDITOR,
    "org.eclipse.equinox.launcher": EDITOR,
}
_NODE: dict[str, str] = {
    ".vscode-server": EDITOR,
    ".vscode-insiders": EDITOR,
    ".cursor-server": EDITOR,
    ".windsurf-server": EDITOR,
    "/code-server/": EDITOR,
    "/vscode-server/": EDITOR,
    "/nx/src/daemon/": BUILD,
}
_DOTNET: dict[str, str] = {"VBCSCompiler.dll": BUILD, "/nodemode:": BUILD, "/nodeReuse:": BUILD}


def _names(row: ProcessRow) -> tuple[str, ...]:
    """What the process is called, by the most reliable of its names first."""
    base = row.exe.removesuffix(" (deleted)").rsplit("/", 1)[-1]
    found = [base] if base else []
    if row.argv:
        first = row.argv[0]
        # A daemon's title as a whole: "tmux: server", "bazel(shop)".
        found += [first.rsplit("/", 1)[-1], first]
        if found[0] in _SHELLS or found[0].startswith(_INTERPRETERS):
            found += _script(row.argv)
    found.append(row.comm)
    return tuple(found)


def _script(argv: Argv) -> list[str]:
    """The file name of the script, or the module's, that an interpreter's arguments name."""
    for argument in argv[1:]:
        if argument in {"-c", "-e"}:
            return []
        if not argument.startswith("-"):
            return [argument.rsplit("/", 1)[-1]]
    return []


def _browser(names: Names, argv: Argv) -> str | None:
    if BROWSERS.isdisjoint(names):
        return None
    if any(a.startswith(("--headless", "--type=")) for a in argv):
        return None
    return None if {"-headless", "-contentproc"}.intersection(argv) else BROWSER


def _ssh_tunnel(names: Names, argv: Argv) -> str | None:
    """Ssh that forwards, runs no command, went to the background, or shares its connection."""
    if "ssh" not in names:
        return None
    if argv and argv[0].startswith("ssh: "):
        return TUNNEL  # the title of one that others' connections go through
    rest = list(argv[1:])
    operands = 0
    while rest and operands < 2:  # noqa: PLR2004 (a host, then a command with options of its own)
        argument = rest.pop(0)
        if not argument.startswith("-") or argument == "-":
            operands += 1
        elif _forwards(argument[1:], rest):
            return TUNNEL
    return None


def _forwards(letters: str, rest: list[str]) -> bool:
    """Whether one argument's options forward; takes a value that stands in the next argument."""
    for place, letter in enumerate(letters):
        if letter in _SSH_FORWARDS:
            return True
        if letter in _SSH_VALUES:
            value = letters[place + 1 :] or (rest.pop(0) if rest else "")
            return letter == "o" and value.lower().startswith(_SSH_SETTINGS)
    return False


def _by_text(program: str, table: dict[str, str]) -> Callable[[Names, Argv], str | None]:
    """A rule for a program that many things run in: what its arguments hold tells."""

    def rule(names: Names, argv: Argv) -> str | None:
        if program not in names:
            return None
        text = "\n".join(argv)
        return next((category for part, category in table.items() if part in text), None)

    return rule


def _daemon(names: Names, argv: Argv) -> str | None:
    """Clients and daemons of one name: the daemon's own subcommand tells."""
    if "adb" in names and not {"fork-server", "start-server", "nodaemon"}.isdisjoint(argv):
        return BUILD
    if "git" in names and "fsmonitor--daemon" in argv:
        return BUILD
    return BUILD if "turbo" in names and "daemon" in argv else None


def _runtime(names: Names, argv: Argv) -> str | None:
    """A runtime's own service or virtual machine, but not a client or anybody's own machine."""
    if "podman" in names and not {"service", "pause"}.isdisjoint(argv):
        return RUNTIME
    machine = any(name.startswith("qemu-system") for name in names)
    if machine and any(word in "\n".join(argv) for word in _MACHINES):
        return RUNTIME
    return None


_BY_ARGUMENTS: tuple[Callable[[Names, Argv], str | None], ...] = (
    _browser,
    _ssh_tunnel,
    _by_text("java", _JAVA),
    _by_text("node", _NODE),
    _by_text("dotnet", _DOTNET),
    _daemon,
    _runtime,
)


def status_only(row: ProcessRow, extra: frozenset[str] = frozenset()) -> str | None:
    """The category under which a process is only ever shown, or None.

    `extra` are names from `[protect] programs`.
    """
    names = _names(row)
    if not extra.isdisjoint(names) or row.exe in extra:
        return CONFIGURED
    for name in names:
        category = CATEGORIES.get(name)
        if category is not None:
            return category
        if name.startswith(_PREFIXES):
            return next(c for prefix, c in PREFIXES.items() if name.startswith(prefix))
    if row.comm in _CUT:
        return _CUT[row.comm]
    argv = row.argv or ()
    for rule in _BY_ARGUMENTS:
        category = rule(names, argv)
        if category is not None:
            return category
    return None


def may_be_shared(comm: str) -> bool:
    """Whether a process of this command name can be one that `shared_runtime` knows.

    A first sieve that needs nothing but the name; programs that give themselves other names are
    missed, and only not shown.
    """
    category = CATEGORIES.get(comm) or _CUT.get(comm)
    return category in SHARED or comm in {"ssh", "podman"} or comm.startswith("qemu-system")


def shared_runtime(row: ProcessRow, extra: frozenset[str] = frozenset()) -> str | None:
    """The category if the process is part of the shared runtime that is worth a line of its own.

    What a runtime starts for each container or connection is not.
    """
    names = _names(row)
    if not PARTS.isdisjoint(names) or any(name.startswith("containerd-shim") for name in names):
        return None
    category = status_only(row, extra)
    return category if category in SHARED else None


def is_init(row: ProcessRow) -> bool:
    """Whether orphans are handed to this process: pid 1, or a user's service manager."""
    if row.pid == 1:
        return True
    return row.comm == "systemd" and row.argv is not None and "--user" in row.argv
