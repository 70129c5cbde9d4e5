"""A private Docker daemon: own directories, socket, bridge and addresses; ended by its pid."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from support.busybox import busybox_archive
from support.engines import find_program
from support.waiting import eventually

IMAGE = "box"
_PATIENCE = 30.0


class Dockerd:
    """One running daemon with the image `box` (all of busybox) and nothing else in it.

    `docker("run", …)` runs the command line against it and returns its output.
    """

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cd-"))
        self.socket = self.root / "s"
        self.host = f"unix://{self.socket}"
        self._bridge = f"cd{os.urandom(4).hex()}"
        self._subnet = ""
        self._log = (self.root / "log").open("wb")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Dockerd:
        """Start it, wait until it answers, and give it its image."""
        self._subnet = self._make_bridge()
        self._run()
        self.run("import", "-", IMAGE, given=busybox_archive())
        return self

    def restart(self) -> None:
        """End the daemon and start it again with all that it keeps."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_PATIENCE)
        self._run()

    def _run(self) -> None:
        dockerd = find_program("dockerd")
        assert dockerd is not None
        # Daemons share the machine's iptables chains, and two that start at once trip over them.
        with open(os.path.join(tempfile.gettempdir(), "corral-tests-dockerd"), "w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            self._start_and_wait(dockerd)

    def _start_and_wait(self, dockerd: str) -> None:
        self._process = subprocess.Popen(
            [
                dockerd,
                *("--data-root", str(self.root / "data"), "--exec-root", str(self.root / "exec")),
                *("--host", self.host, "--pidfile", str(self.root / "pid")),
                *("--bridge", self._bridge, "--shutdown-timeout", "1"),
                *("--default-address-pool", f"base={self._subnet}.64/26,size=29"),
            ],
            env={**os.environ, "TMPDIR": str(self.root)},  # containerd may leave a dump of itself
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        eventually(self._answers, _PATIENCE, f"dockerd; see {self.root}/log")

    def _make_bridge(self) -> str:
        """A bridge of its own in a subnet that nothing else here uses; its first three bytes."""
        used = subprocess.run(["ip", "-4", "address"], capture_output=True, text=True, check=True)
        while True:
            subnet = "10.{}.{}".format(*(128 + byte // 2 for byte in os.urandom(2)))
            if f" {subnet}." not in used.stdout:
                break
        link = ["ip", "link", "add", "name", self._bridge, "type", "bridge"]
        subprocess.run(link, check=True)
        address = ["ip", "address", "add", f"{subnet}.1/26", "dev", self._bridge]
        subprocess.run(address, check=True)
        subprocess.run(["ip", "link", "set", self._bridge, "up"], check=True)
        return subnet

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.root / "log").read_text()[-2000:]
        if not self.socket.exists():
            return False
        return self.run("version", check=False).returncode == 0

    @property
    def env(self) -> dict[str, str]:
        """Variables that lead the docker program, compose and corral here and nowhere else."""
        return {**os.environ, "DOCKER_HOST": self.host, "DOCKER_CONFIG": str(self.root / "cfg")}

    def run(
        self, *arguments: str, given: bytes | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the docker program against it."""
        done = subprocess.run(
            ["docker", *arguments], env=self.env, input=given, capture_output=True, check=False
        )
        if check:
            assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr.decode()}"
        return done

    def docker(self, *arguments: str) -> str:
        """What the docker program prints, without the last newline."""
        return self.run(*arguments).stdout.decode().strip()

    def container(self, *arguments: str, command: tuple[str, ...] = ("sleep", "600")) -> str:
        """Start a detached container of the image with these options; its full id."""
        return self.docker("run", "--detach", *arguments, IMAGE, *command)

    def ids(self, *what: str) -> set[str]:
        """The full ids of all containers, or of all `what` ("network", "volume")."""
        listing = ("ps", "--all") if not what else (*what, "ls")
        return set(self.docker(*listing, "--quiet", *_untruncated(what)).split())

    def inspect(self, *what: str) -> Any:
        """The first object of `docker inspect`."""
        return json.loads(self.docker("inspect", *what))[0]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the daemon itself (SIGSTOP, SIGCONT)."""
        assert self._process is not None
        self._process.send_signal(number)

    def clear(self) -> None:
        """Remove all containers, networks and volumes, and images that tests made."""
        if ids := self.ids():
            self.run("rm", "--force", "--volumes", *ids)
        self.run("network", "prune", "--force")
        if names := self.ids("volume"):
            self.run("volume", "rm", "--force", *names)
        images = set(self.docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").split())
        if images := images - {f"{IMAGE}:latest"}:
            self.run("image", "rm", "--force", *images)

    def stop(self) -> None:
        """End the daemon and all that it started, and remove what it kept."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(_PATIENCE)
        self._log.close()
        subprocess.run(["ip", "link", "delete", self._bridge], check=False)
        unmount_below(self.root)
        shutil.rmtree(self.root, ignore_errors=True)


def _untruncated(what: tuple[str, ...]) -> tuple[str, ...]:
    return () if what == ("volume",) else ("--no-trunc",)


def unmount_below(root: Path) -> None:
    """Unmount whatever an engine left mounted below its directory, the innermost first."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        points = [line.split()[1] for line in file]
    for point in reversed(points):
        if Path(point).is_relative_to(root):
            subprocess.run(["umount", "--lazy", point], check=False)
