"""The pytest plugin, used by a test suite of somebody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from corral import list_allocations
from support.command import alive, ask
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

    Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def suite(private_root: Path) -> Suite:
    """Runs pytest over `source` in a directory of its own; `words` go to pytest."""
    directory = private_root / "suite"
    directory.mkdir()
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")

    def run(source: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            _command(directory, source, *words),
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def _command(directory: Path, source: str, *words: str) -> list[str]:
    (directory / "test_it.py").write_text(textwrap.dedent(source))
    base = directory.parent / "base"
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", f"--basetemp={base}", *words]


def _passed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_port_is_held_for_one_test(suite: Suite) -> None:
    done = suite(
        """
        import socket
        import pytest

        seen = []

        @pytest.mark.parametrize("turn", [1, 2])
        def test_it(corral_port, turn):
            with socket.socket() as stranger, pytest.raises(OSError):
                stranger.bind(("127.0.0.1", corral_port.port))
            with socket.create_server(("127.0.0.1", corral_port.port)):
                pass

        def test_another_way(corral_port):
            held, port = corral_port
            held.release()
            with socket.socket() as server:
                server.bind(("127.0.0.1", port))
        """
    )
    _passed(done)
    assert list_allocations() == ()


def test_each_worker_gets_a_run_of_its_own(suite: Suite, private_root: Path) -> None:
    source = f"""
    import os, pytest
    from corral import list_allocations

    @pytest.mark.parametrize("turn", range(8))
    def test_it(corral_ports, turn):
        assert len(corral_ports.ports) == 4
        first = corral_ports.ports[0]
        assert corral_ports.ports == tuple(range(first, first + 4))
        worker = os.environ["PYTEST_XDIST_WORKER"]
        assert len(list_allocations(f"pytest {{worker}}")) == 4
        with open("{private_root}/" + worker, "w") as file:
            print(*corral_ports.ports, file=file)
    """
    _passed(suite(source, "-n", "2", "-o", "corral_ports=4"))
    runs = [set((private_root / f"gw{n}").read_text().split()) for n in range(2)]
    assert len(runs[0] | runs[1]) == 8
    assert list_allocations() == ()


@pytest.mark.parametrize("count", ["0", "-1", "many", ""])
def test_a_count_that_is_none_is_an_error(suite: Suite, count: str) -> None:
    done = suite("def test_it(corral_ports): pass", "-o", f"corral_ports={count}")
    assert done.returncode != 0
    assert "expected how many ports" in done.stdout + done.stderr


_LEAVES_MUCH = """
    import json, subprocess, sys

    def test_it(corral_environment, tmp_path):
        env = corral_environment
        assert env.path == tmp_path
        ports = env.environment.claim_ports("web", api=23456)
        assert env.environ["WEB_PORT"] == str(ports["web"])
        run = env.environment.run("sleep", "600", name="web")
        plain = subprocess.Popen(["sleep", "600"], env=env.environ, cwd=env.path)
        command = [sys.executable, "-m", "corral.cli.main", "run", "--detach", "--", "sleep", "600"]
        subprocess.run(command, env=env.environ, cwd=env.path, check=True, capture_output=True)
        owned = [each.sighting for each in env.environment.status().owned]
        pids = [int(each.id) for each in owned if each.kind.value == "process"]
        assert len(pids) >= 3, pids
        with open("{root}/pids", "w") as file:
            json.dump([*pids, plain.pid, run.pid], file)
        {more}
"""


def test_what_a_test_leaves_running_is_taken_down(suite: Suite, private_root: Path) -> None:
    _passed(suite(_LEAVES_MUCH.format(root=private_root, more="plain.returncode = 0")))
    pids = json.loads((private_root / "pids").read_text())
    assert not any(alive(pid) for pid in pids)
    assert ask(private_root, "port", "list", "--all")["ports"] == []
    status = ask(private_root, "status", "--all")
    assert not status["owned"]
    assert not status["orphans"]


def test_a_failing_test_leaves_nothing_either(suite: Suite, private_root: Path) -> None:
    more = "plain.returncode = 0; raise AssertionError"
    done = suite(_LEAVES_MUCH.format(root=private_root, more=more))
    assert "1 failed" in done.stdout
    assert "error" not in done.stdout.splitlines()[-1]
    assert not any(alive(pid) for pid in json.loads((private_root / "pids").read_text()))


def test_what_cannot_be_taken_down_fails_the_test(
    suite: Suite, private_root: Path, track: Tracker
) -> None:
    done = suite(
        f"""
        from corral.cli.main import main

        def test_it(corral_environment):
            kept = corral_environment.environment.run("sleep", "600", name="kept")
            with open("{private_root}/pid", "w") as file:
                file.write(str(kept.pid))
            assert main(["keep", "--env", str(corral_environment.path), str(kept.pid)]) == 0
        """
    )
    pid = track.pid(int((private_root / "pid").read_text()))
    assert alive(pid)
    assert "the environment is not empty" in done.stdout
    assert f"process {pid} kept" in done.stdout
    assert "1 passed, 1 error" in done.stdout


def test_a_killed_suite_is_found_by_the_next_cleanup(private_root: Path, track: Tracker) -> None:
    directory = private_root / "suite"
    directory.mkdir()
    more = "print('ready', flush=True); import time; time.sleep(600)"
    command = _command(directory, _LEAVES_MUCH.format(root=private_root, more=more), "-s")
    runner = track.spawn(command, cwd=directory, stdout=subprocess.DEVNULL)
    assert eventually(lambda: (private_root / "pids").exists() and _read(private_root), 30)
    pids = [track.pid(pid) for pid in _read(private_root)]
    runner.kill()
    runner.wait()
    grace = {"CORRAL_KEEPER_GRACE": "0"}
    done = ask(private_root, "cleanup", "--yes", "--data", env=grace, check=None)
    assert not any(alive(pid) for pid in pids), done


def _read(root: Path) -> list[int]:
    try:
        found: list[int] = json.loads((root / "pids").read_text())
    except ValueError:
        # Not written to its end yet.
        return []
    return found


def test_a_directory_within_a_repository_is_refused(suite: Suite, git_repo: Path) -> None:
    done = suite("def test_it(corral_environment): pass", f"--basetemp={git_repo}/tmp")
    assert "lies within a git repository" in done.stdout
    assert "1 error" in done.stdout


def test_the_plugin_costs_a_suite_that_does_not_use_it_nothing() -> None:
    program = "import sys, corral.integrations.pytest_plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    ours = {name for name in done.stdout.split() if name.startswith("corral")}
    assert ours == {"corral", "corral.integrations", "corral.integrations.pytest_plugin"}


@pytest.mark.parametrize(
    ("source", "words", "said"),
    [
        ("def test_it(corral_ports): pass", ("-o", "corral_ports=0"), "a number from 1 up"),
        ("def test_it(corral_ports): pass", ("-o", "corral_ports=ten"), "a number from 1 up"),
        ("def test_it(corral_ports): pass", ("-o", "corral_ports=60000"), "does not fit the pool"),
        (
            "def test_it(corral_environment): corral_environment.claim_ports('web')",
            (),
            "corral_environment.environment.claim_ports",
        ),
        (
            "def test_it(corral_environment): corral_environment.ports",
            (),
            "corral_environment has no ports: it has path, session, environment",
        ),
    ],
)
def test_a_wrong_use_is_answered_without_a_way_through_corral(
    suite: Suite, source: str, words: tuple[str, ...], said: str
) -> None:
    done = suite(source, *words)
    assert done.returncode == 1
    assert said in done.stdout
    assert "services/" not in done.stdout
