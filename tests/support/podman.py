"""A private Podman: own storage, and its Docker-compatible service on a socket of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from support.busybox import busybox_archive
from support.dockerd import IMAGE, unmount_below
from support.waiting import eventually

_PATIENCE = 30.0
# Without these limits runc fails where the hard limits are below Podman's defaults.
_LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")


class Podman:
    """One private store with the image `box`; `service` answers at `socket` while it runs."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cp-"))
        self.socket = self.root / "s"
        self.host = f"unix://{self.socket}"
        self._log = (self.root / "log").open("wb")
        self._service: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """The podman command line with all that makes it private."""
        return [
            "podman",
            *("--root", str(self.root / "store"), "--runroot", str(self.root / "run")),
            *("--tmpdir", str(self.root / "tmp"), "--runtime", "runc"),
            *("--network-config-dir", str(self.root / "nets"), "--cgroup-manager", "cgroupfs"),
        ]

    def start(self) -> Podman:
        """Start the service, wait until it answers, and give it its image."""
        (self.root / "nets").mkdir()
        self._service = subprocess.Popen(
            [*self.command, "system", "service", "--time", "0", self.host],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        eventually(self.socket.exists, _PATIENCE, f"podman; see {self.root}/log")
        self.podman("import", "-", IMAGE, given=busybox_archive())
        return self

    @property
    def env(self) -> dict[str, str]:
        """Variables that lead here and to no other engine."""
        return {**os.environ, "CONTAINER_HOST": self.host}

    def podman(self, *arguments: str, given: bytes | None = None) -> str:
        """What the podman program prints, without the last newline."""
        done = subprocess.run(
            [*self.command, *arguments], input=given, capture_output=True, check=False
        )
        assert done.returncode == 0, f"podman {' '.join(arguments)}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def container(self, *arguments: str, command: tuple[str, ...] = ("sleep", "600")) -> str:
        """Start a detached container of the image with these options; its full id."""
        options = (*_LIMITS, "--network", "host", *arguments)
        return self.podman("run", "--detach", *options, IMAGE, *command)

    def ids(self) -> set[str]:
        """The full ids of all containers."""
        return set(self.podman("ps", "--all", "--quiet", "--no-trunc").split())

    def clear(self) -> None:
        """Remove all containers, networks and volumes."""
        self.podman("rm", "--all", "--force", "--volumes", "--time", "0")
        self.podman("network", "prune", "--force")
        self.podman("volume", "prune", "--force")

    def stop(self) -> None:
        """End the service and all containers, and remove the store."""
        if self._service is not None and self._service.poll() is None:
            self.clear()
            self._service.terminate()
            self._service.wait(_PATIENCE)
        self._log.close()
        unmount_below(self.root)
        shutil.rmtree(self.root, ignore_errors=True)
