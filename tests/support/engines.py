"""Which real programs and engines can be had on this machine, and which must be had."""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
from typing import NamedTuple

import pytest

# Read at import, before any test clears the variables: .ci/run names what it has provisioned.
_REQUIRED = frozenset(filter(None, os.environ.get("CORRAL_REQUIRE_ENGINES", "").split(",")))

# Debian keeps servers off PATH; .ci/run keeps there what no package has.
_MORE_DIRECTORIES = ("/usr/lib/postgresql/*/bin", "/usr/sbin", "/sbin", "/var/cache/corral-ci/bin")

# Unpacked from Debian's cloud kernel; the running machine's own kernel need not be one.
GUEST_KERNELS = "/var/cache/corral-ci/kernel/boot/vmlinuz-*"


class Needs(NamedTuple):
    """What an engine needs: programs, modules, device or other files (globs), and root."""

    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    root: bool = False


ENGINES = {
    "compose": Needs(("docker-compose", "dockerd", "iptables"), root=True),
    "dash": Needs(("dash",)),
    "docker": Needs(("dockerd", "docker", "ip", "iptables", "busybox"), root=True),
    "firecracker": Needs(
        ("firecracker", "jailer", "lz4"), files=("/dev/kvm", GUEST_KERNELS), root=True
    ),
    "namespaces": Needs(("unshare", "ip"), files=("/proc/sys/kernel/ns_last_pid",), root=True),
    "node": Needs(("node", "npm")),
    "podman": Needs(("podman", "runc", "busybox"), root=True),
    "postgres": Needs(("initdb", "pg_ctl", "postgres")),
    "servers": Needs(modules=("flask", "granian", "gunicorn", "hypercorn", "uvicorn")),
    "tmux": Needs(("tmux",)),
    "zsh": Needs(("zsh",)),
}


def find_program(name: str) -> str | None:
    """The program's path: on PATH, else in the places where distributions hide servers."""
    hidden = [place for pattern in _MORE_DIRECTORIES for place in sorted(glob.glob(pattern))]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(reversed(hidden)))


def why_not(name: str) -> str:
    """Why the engine cannot be had here, "" if it can."""
    needs = ENGINES[name]
    if needs.root and os.geteuid() != 0:
        return "needs root"
    for program in needs.programs:
        if find_program(program) is None:
            return f"the program {program} is not installed"
    for module in needs.modules:
        if importlib.util.find_spec(module) is None:
            return f"the Python package {module} is not installed"
    for pattern in needs.files:
        if not glob.glob(pattern):
            return f"there is no {pattern}"
    return ""


def require_engine(name: str, required: frozenset[str] = _REQUIRED) -> None:
    """Skip the test where the engine cannot be had, but fail where it is required.

    Required are the names in CORRAL_REQUIRE_ENGINES (comma-separated, as in `ENGINES`).
    """
    reason = why_not(name)
    if not reason:
        return
    if name in required:
        pytest.fail(f"the engine {name} is required here: {reason}")
    pytest.skip(f"no {name}: {reason}")
