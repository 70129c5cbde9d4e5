"""The real Firecracker: where its programs are, and a guest kernel that it can start."""

from __future__ import annotations

import glob
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.engines import GUEST_KERNELS, find_program, require_engine
from support.microvms import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

_LZ4 = b"\x02\x21\x4c\x18"  # the legacy frame that kernels are packed with
_ELF = b"\x7fELF"


@pytest.fixture(scope="session")
def guest_kernel() -> Iterator[Path]:
    """The kernel as the ELF file that Firecracker wants: the unpacked payload of an image."""
    require_engine("firecracker")
    image = Path(max(glob.glob(GUEST_KERNELS))).read_bytes()
    with tempfile.TemporaryDirectory(prefix="cfc-") as directory:
        packed = Path(directory) / "packed"
        packed.write_bytes(image[image.index(_LZ4) :])
        kernel = Path(directory) / "vmlinux"
        with kernel.open("wb") as file:
            # What follows the frame is not its own, so the program complains at the end.
            subprocess.run(
                ["lz4", "-dc", packed], stdout=file, stderr=subprocess.DEVNULL, check=False
            )
        with kernel.open("rb") as file:
            assert file.read(len(_ELF)) == _ELF
        yield kernel


@pytest.fixture
def machine(guest_kernel: Path, private_root: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A microVM without a drive: its kernel finds no root and waits."""
    program = find_program("firecracker")
    assert program is not None
    monkeypatch.setenv("PATH", f"{os.path.dirname(program)}{os.pathsep}{os.environ['PATH']}")
    config = private_root / "vm.json"
    config.write_text(configuration(guest_kernel))
    return Machine(config)


def configuration(kernel: Path | str) -> str:
    """The configuration of the smallest microVM."""
    return json.dumps(
        {
            "boot-source": {
                "kernel_image_path": str(kernel),
                "boot_args": "reboot=k panic=0 nomodules",
            },
            "drives": [],
            "machine-config": {"vcpu_count": 1, "mem_size_mib": 128},
        }
    )
