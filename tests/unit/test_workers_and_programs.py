"""Known workers, their anchors, and the programs that are only ever shown."""

from __future__ import annotations

import pytest

from corral.decide.protected import is_init, status_only
from corral.decide.workers import agent_pid, find_anchor, inherited_sessions, worker_of
from corral.model.process import ProcessRow


def row(pid: int, *argv: str, comm: str = "x", exe: str = "") -> ProcessRow:
    return ProcessRow(pid, 1, 0, 0, 0, 0, "S", comm, exe, argv, None, True, False, 1)


CLAUDE = row(50, "node", "/lib/@anthropic-ai/claude-code/cli.js", comm="node", exe="/usr/bin/node")
CODEX = row(40, "codex", comm="codex", exe="/opt/codex")
SHELL = row(60, "bash", comm="bash", exe="/bin/bash")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (CLAUDE, "claude"),
        (CODEX, "codex"),
        (row(9, "claude", comm="claude"), "claude"),
        (row(9, "/opt/Runner.Worker", exe="/opt/Runner.Worker"), "github"),
        (row(9, "python3", "-m", "aider", exe="/usr/bin/python3"), "aider"),
        (SHELL, None),
        (row(9, comm="tmux: server"), None),
        (row(9, "vim", "/lib/claude-code/x", exe="/usr/bin/vim"), None),
    ],
)
def test_workers_are_known_by_program_or_script_never_by_guess(
    given: ProcessRow, name: str | None
) -> None:
    assert worker_of(given) == name


def test_the_nearest_worker_is_the_anchor_and_the_named_kind_comes_first() -> None:
    above = (SHELL, CODEX, CLAUDE)
    assert find_anchor({}, above) == (40, "codex")
    assert find_anchor({}, above, "claude") == (50, "claude")
    assert find_anchor({"CLAUDE_PID": "60"}, above) == (60, "claude")
    assert find_anchor({"CLAUDE_PID": "999"}, (SHELL,)) is None
    assert find_anchor({}, (row(1, "claude", comm="claude"),)) is None


def test_a_runner_that_outlives_its_jobs_anchors_a_job_by_its_child() -> None:
    runner = row(30, "gitlab-runner", "run", comm="gitlab-runner", exe="/usr/bin/gitlab-runner")
    login = row(70, "su", comm="su", exe="/bin/su")
    assert find_anchor({}, (SHELL, login, runner)) == (70, "gitlab")
    assert find_anchor({}, (SHELL, login, runner, CLAUDE), "gitlab") == (70, "gitlab")
    assert find_anchor({}, (CODEX, SHELL, runner)) == (40, "codex")
    assert find_anchor({}, (runner,)) == (30, "gitlab")


@pytest.mark.parametrize(("value", "pid"), [("12", 12), ("", 0), ("x", 0), ("²", 0)])
def test_an_agents_own_pid_is_read_from_its_variable(value: str, pid: int) -> None:
    assert agent_pid({"CLAUDE_PID": value}, "claude") == pid


def test_session_ids_come_nearest_worker_first() -> None:
    environ = {"CLAUDE_CODE_SESSION_ID": "outer", "CODEX_SESSION_ID": "inner", "CI_JOB_ID": " "}
    found = inherited_sessions(environ, (SHELL, CODEX, CLAUDE))
    assert [each.session for each in found] == ["inner", "outer"]
    assert [each.session for each in inherited_sessions(environ, ())] == ["outer", "inner"]


def test_the_legs_of_a_matrix_are_different_sessions() -> None:
    job = {"GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_JOB": "test"}
    sessions = {
        inherited_sessions({**job, "RUNNER_NAME": name}, ())[0].session for name in ("a", "b")
    }
    assert len(sessions) == 2
    assert inherited_sessions(job, ()) == ()


@pytest.mark.parametrize(
    ("given", "category"),
    [
        (row(9, "dockerd", exe="/usr/bin/dockerd"), "container runtime"),
        (row(9, exe="/usr/bin/tmux (deleted)"), "terminal multiplexer"),
        (row(9, comm="tmux: client"), "terminal multiplexer"),
        (row(9, comm="containerd-shim-runc-v3"), "container runtime"),
        (row(9, comm="container-apise"), "container runtime"),
        (row(9, "ssh", "-NL", "1:h:2", "h"), "tunnel or VPN"),
        (row(9, "ssh", "-o", "LocalForward=1", "h"), "tunnel or VPN"),
        (row(9, "ssh", "host", "ls"), None),
        (row(9, "ssh", "--version"), None),
        (row(9, "java", "org.gradle.launcher.daemon.bootstrap.GradleDaemon"), "build daemon"),
        (row(9, "java", "com.intellij.idea.Main"), "editor"),
        (row(9, "bazel(shop)", "--x"), "build daemon"),
        (row(9, "node", "/home/x/.vscode-server/bin/server.js"), "editor"),
        (row(9, "node", "server.js"), None),
        (row(9, "podman", "system", "service"), "container runtime"),
        (row(9, "podman", "run", "x"), None),
        (row(9, "qemu-system-x86_64", "-name", "lima-default"), "container runtime"),
        (row(9, "qemu-system-x86_64", "-name", "mine"), None),
        (row(9, "firefox"), "browser"),
        (row(9, "firefox", "-headless"), None),
        (row(9, "mine"), "program protected by the configuration"),
        (row(9, "python3", "app.py", exe="/usr/bin/python3"), None),
    ],
)
def test_programs_that_are_only_shown(given: ProcessRow, category: str | None) -> None:
    assert status_only(given, frozenset({"mine"})) == category


def test_orphans_are_handed_to_init_and_to_a_users_service_manager() -> None:
    assert is_init(row(1))
    assert is_init(row(9, "/lib/systemd/systemd", "--user", comm="systemd"))
    assert not is_init(row(9, "systemd", comm="systemd"))
    assert not is_init(SHELL)
