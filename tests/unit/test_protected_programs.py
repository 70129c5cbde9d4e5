"""No argument, title or owner takes a program out of the table of those that are only shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.ancestry import Anchor, Look, Root, attribute_processes, relevant
from corral.decide.programs import BROWSERS, CATEGORIES, PARTS, PREFIXES, SHARED
from corral.decide.protected import may_be_shared, shared_runtime, status_only
from corral.model.process import ProcessIdentity, ProcessRow, ProcessTable

ME = "own-me"


def row(
    pid: int, ppid: int, *argv: str, comm: str = "x", exe: str = "", mark: str | None = ME
) -> ProcessRow:
    return ProcessRow(pid, ppid, pid, 1000, pid, 0, "S", comm, exe, argv, mark, True, False, 7)


def look(*rows: ProcessRow, roots: tuple[Root, ...] = ()) -> Look:
    every = (
        row(1, 0, comm="init", mark=None),
        row(900, 1, "corral", comm="corral", mark=None),
        *rows,
    )
    table = ProcessTable({r.pid: r for r in every}, "boot", 7, 900, 1000)
    return Look(table, roots, (Anchor(identity(1), "own-other"),))


def identity(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, pid, "boot", 7)


_words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_flags = st.sampled_from(
    ["--headless", "-headless", "--type=gpu", "-N", "--", "-c", "--version", ""]
)
_argv = st.lists(_words | _flags, max_size=6).map(tuple)


@given(st.sampled_from(sorted(CATEGORIES)), _argv, _words)
def test_an_executable_in_the_table_is_protected_whatever_its_arguments_and_title(
    name: str, argv: tuple[str, ...], comm: str
) -> None:
    given_ = row(9, 1, *argv, comm=comm, exe=f"/opt/bin/{name}")
    assert status_only(given_) is not None


@given(st.sampled_from(sorted(CATEGORIES)), _argv)
def test_a_program_whose_executable_cannot_be_read_is_known_by_its_own_name(
    name: str, argv: tuple[str, ...]
) -> None:
    assert status_only(row(9, 1, f"/opt/bin/{name}", *argv)) is not None
    assert status_only(row(9, 1, *argv, comm=name[:15])) is not None


@given(st.sampled_from(sorted(BROWSERS)), _argv.filter(lambda a: not _excepted(a)))
def test_a_browser_is_protected_unless_it_is_headless_or_a_part(
    name: str, argv: tuple[str, ...]
) -> None:
    assert status_only(row(9, 1, name, *argv, exe=f"/opt/{name}")) is not None


def _excepted(argv: tuple[str, ...]) -> bool:
    return any(
        a in {"-headless", "-contentproc"} or a.startswith(("--headless", "--type=")) for a in argv
    )


@given(st.sampled_from(sorted(PREFIXES)), _words)
def test_versions_and_titles_are_known_by_how_they_begin(prefix: str, rest: str) -> None:
    assert status_only(row(9, 1, prefix + rest.replace("/", ""))) is not None


@given(_argv)
def test_a_programs_name_among_anothers_arguments_protects_nothing(argv: tuple[str, ...]) -> None:
    """What matters is what runs, not what is spoken about."""
    for name in ("dockerd", "tmux", "cloudflared"):
        given_ = row(9, 1, "/opt/app", *argv, name, comm="app", exe="/opt/app")
        assert status_only(given_) is None


@pytest.mark.parametrize(
    ("argv", "exe", "protected"),
    [
        (("python3", "/usr/bin/sshuttle", "-r", "h"), "/usr/bin/python3", True),
        (("python3", "-m", "sshuttle"), "/usr/bin/python3", True),
        (("bash", "/usr/bin/wg-quick", "up", "wg0"), "/bin/bash", True),
        (("bash", "-c", "/usr/bin/tmux"), "/bin/bash", False),
        (("node", "-e", "code"), "/usr/bin/node", False),
        (("python3", "app.py"), "/usr/bin/python3", False),
        (("short-server", "/srv/code"), "/opt/short-server", False),
        (("ssh", "-fNL", "1:h:2", "h"), "/usr/bin/ssh", True),
        (("ssh", "-p", "22", "-R", "1:h:2", "h"), "/usr/bin/ssh", True),
        (("ssh", "h", "-D1080"), "/usr/bin/ssh", True),
        (("ssh", "-vD", "1080", "h"), "/usr/bin/ssh", True),
        (("ssh", "-oLocalForward=1 h:2", "h"), "/usr/bin/ssh", True),
        (("ssh", "-o", "ControlMaster=auto", "h"), "/usr/bin/ssh", True),
        (("ssh", "-M", "-S", "ctl", "h"), "/usr/bin/ssh", True),
        (("ssh: /home/x/.ssh/cm [mux]",), "/usr/bin/ssh", True),
        (("ssh", "h"), "/usr/bin/ssh", False),
        (("ssh", "-"), "/usr/bin/ssh", False),
        (("ssh", "-i", "LRD", "-l", "N", "h"), "/usr/bin/ssh", False),
        (("ssh", "h", "ls", "-R"), "/usr/bin/ssh", False),
        (("ssh", "-x", "-oClearAllForwardings=yes", "h"), "/usr/bin/ssh", False),
        (("ssh", "-o", "ForwardAgent=no", "h"), "/usr/bin/ssh", False),
        (("ssh", "-o"), "/usr/bin/ssh", False),
        (("ssh", "-4v", "h"), "/usr/bin/ssh", False),
        (("adb", "-L", "tcp:5037", "fork-server", "server"), "/opt/adb", True),
        (("adb", "logcat"), "/opt/adb", False),
        (("git", "fsmonitor--daemon", "run"), "/usr/bin/git", True),
        (("git", "fetch"), "/usr/bin/git", False),
        (("turbo", "--skip-infer", "daemon"), "/opt/turbo", True),
        (("turbo", "run", "dev"), "/opt/turbo", False),
        (("podman", "system", "service"), "/usr/bin/podman", True),
        (("podman", "pause"), "/usr/bin/podman", True),
        (("podman", "run", "x"), "/usr/bin/podman", False),
        (("dotnet", "/sdk/VBCSCompiler.dll"), "/usr/bin/dotnet", True),
        (("dotnet", "run"), "/usr/bin/dotnet", False),
        (("java", "-cp", "x", "org.gradle.wrapper.GradleWrapperMain"), "/jdk/java", False),
        (("chrome", "--type=renderer"), "/opt/chrome", False),
        (("firefox", "-contentproc", "7"), "/opt/firefox", False),
        (("headless_shell",), "/opt/headless_shell", False),
    ],
)
def test_arguments_tell_where_a_name_alone_does_not(
    argv: tuple[str, ...], exe: str, protected: bool
) -> None:
    comm = argv[0].rsplit("/", 1)[-1][:15]
    assert (status_only(row(9, 1, *argv, comm=comm, exe=exe)) is not None) == protected


def test_the_configuration_adds_names_and_paths() -> None:
    extra = frozenset({"mydaemon", "/opt/other"})
    assert status_only(row(9, 1, exe="/x/mydaemon"), extra)
    assert status_only(row(9, 1, exe="/opt/other"), extra)
    assert not status_only(row(9, 1, exe="/opt/another"), extra)


@given(st.sampled_from(sorted(CATEGORIES)))
def test_the_runtime_and_tunnels_are_listed_and_their_parts_are_not(name: str) -> None:
    given_ = row(9, 1, name, comm=name[:15], exe=f"/usr/bin/{name}")
    listed = shared_runtime(given_)
    if name in PARTS:
        assert listed is None
    else:
        assert (listed is not None) == (CATEGORIES[name] in SHARED)
    if listed is not None:
        assert may_be_shared(given_.comm)


@pytest.mark.parametrize("comm", ["ssh", "podman", "qemu-system-x86"])
def test_what_only_its_arguments_make_shared_is_looked_at(comm: str) -> None:
    assert may_be_shared(comm)
    assert shared_runtime(row(9, 1, comm, comm=comm)) is None


@given(st.sampled_from(sorted(CATEGORIES)), _argv, st.sampled_from(["recorded", "marked", "below"]))
def test_nothing_below_a_protected_program_is_ever_removable(
    name: str, argv: tuple[str, ...], how: str
) -> None:
    """Whatever made it this owner's: a record above it, a record of it, or the mark."""
    rows = (
        row(5, 1, "app", comm="app", exe="/opt/app"),
        row(10, 5 if how == "below" else 1, *argv, exe=f"/usr/bin/{name}"),
        row(11, 10, "sh", comm="sh", exe="/bin/sh"),
        row(12, 11, "app", comm="app", exe="/opt/app"),
    )
    recorded = {"recorded": 10, "marked": 999, "below": 5}[how]
    root = Root(identity(recorded), "rec", "service", "x", ME, None, "env")
    seen = attribute_processes(look(*rows, roots=(root,)))
    free = {s.id for s in seen if not s.protections and not s.doubts}
    assert free.isdisjoint({"10", "11", "12"})


def test_the_runtime_is_shown_with_its_state_whoever_started_it() -> None:
    tunnel = row(20, 1, "cloudflared", "tunnel", comm="cloudflared", mark=None)
    rows = (
        tunnel._replace(state="T"),
        row(21, 1, "containerd-shim-runc-v2", comm="containerd-shim", mark=None),
        row(22, 1, "vim", comm="vim", mark=None),
        row(23, 1, "ssh", "host", comm="ssh", mark=None),
        row(24, 1, "dockerd", comm="dockerd", mark=None)._replace(uid=0, namespace=None),
    )
    seen = {s.id: s for s in attribute_processes(look(*rows))}
    assert sorted(seen) == ["20", "24"]
    assert all(s.shared and not s.marks for s in seen.values())
    assert (seen["20"].state, seen["20"].protections) == (
        "stopped",
        ("tunnel or VPN: only ever shown",),
    )


def test_what_may_be_shown_is_looked_at_in_full() -> None:
    rows = (row(20, 30, comm="ssh", mark=None), row(30, 1, mark=None), row(40, 1, mark=None))
    assert relevant(look(*rows)) == {20, 30, 1}
