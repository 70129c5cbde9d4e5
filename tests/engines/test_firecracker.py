"""microVMs of the real Firecracker, also behind the real jailer."""

from __future__ import annotations

import glob
import http.client
import json
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from support.command import alive, ask
from support.engines import find_program
from support.firecracker import configuration
from support.microvms import Machine, MicroVMs, kinds, rows, run_directories
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from support.processes import Tracker

_NOBODY = "12345"


class TestRealMicroVMs(MicroVMs):
    """The suite, with microVMs that really run."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._path))


def test_its_api_socket_is_in_its_run_directory_and_answers(
    git_repo: Path, machine: Machine, state_dir: Path
) -> None:
    argv = ("firecracker", "--config-file", str(machine.config))
    pid = int(ask(git_repo, "run", "--detach", "--name", "vm", "--", *argv)["pid"])
    (directory,) = run_directories(state_dir)
    eventually((directory / "s").exists)
    connection = _Connection(directory / "s")
    connection.request("GET", "/")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    assert answer["app_name"] == "Firecracker"
    assert answer["state"] == "Running"
    assert "microvm" in kinds(ask(git_repo, "reap")["removed"])
    assert not alive(pid)
    assert run_directories(state_dir) == []


def test_two_workers_microvms_are_each_their_own(
    git_repo: Path, machine: Machine, track: Tracker
) -> None:
    pids = [
        track.pid(
            int(
                ask(
                    git_repo,
                    *("run", "--detach", "--", *machine.argv()),
                    env={"CORRAL_SESSION": session},
                )["pid"]
            )
        )
        for session in ("one", "two")
    ]
    report = ask(git_repo, "reap", "--session", "one")
    assert [r["identity"]["pid"] for r in report["removed"] if r["kind"] == "microvm"] == pids[:1]
    assert not alive(pids[0])
    assert alive(pids[1])


def test_a_jailed_microvm_is_ended_and_nothing_of_its_jail_is_left(
    git_repo: Path,
    machine: Machine,
    guest_kernel: Path,
    track: Tracker,
    monkeypatch: pytest.MonkeyPatch,
    require_engine: Callable[[str], None],
    state_dir: Path,
) -> None:
    from corral.api import Environment

    require_engine("firecracker")
    del machine  # its programs are on PATH now
    jailer, program = find_program("jailer"), find_program("firecracker")
    assert jailer is not None
    assert program is not None
    monkeypatch.chdir(git_repo)
    base = Path(Environment.open().microvm_directory())
    name = f"jail-{os.urandom(4).hex()}"
    root = base / "firecracker" / name / "root"
    root.mkdir(parents=True)
    shutil.copy(guest_kernel, root / "vmlinux")
    (root / "vm.json").write_text(configuration("/vmlinux"))
    for path in (root / "vmlinux", root / "vm.json"):
        path.chmod(0o644)
    vm = track.spawn(
        [
            *(jailer, "--id", name, "--exec-file", program, "--uid", _NOBODY, "--gid", _NOBODY),
            *("--chroot-base-dir", str(base), "--cgroup", "pids.max=100"),
            *("--", "--no-api", "--config-file", "/vm.json"),
        ],
        stdout=-1,
        stderr=-1,
    )
    (row,) = eventually(lambda: rows(git_repo, "owned"))
    assert row["identity"]["pid"] == vm.pid
    assert str(base) not in Path(f"/proc/{vm.pid}/cmdline").read_text()
    assert _control_groups(name)
    report = ask(git_repo, "reap")
    assert report["remaining"] == []
    assert kinds(report["removed"]).keys() == {"microvm", "directory"}
    assert vm.wait(10) < 0
    assert run_directories(state_dir) == []
    assert _control_groups(name) == []


def _control_groups(name: str) -> list[str]:
    return glob.glob(f"/sys/fs/cgroup/**/firecracker/{name}", recursive=True)
