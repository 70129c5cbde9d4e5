"""The boot's id and clock."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from corral.errors import EnumerationError
from corral.kernel import clock

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@linux_only
def test_the_boot_id_is_the_kernels() -> None:
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert clock.boot_id() == file.read().strip()


def test_every_process_of_one_boot_reads_the_same_id() -> None:
    program = "from corral.kernel import clock; print(clock.boot_id())"
    other = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert other.stdout.decode().strip() == clock.boot_id()


@linux_only
def test_time_since_boot_is_the_kernels_and_never_runs_back() -> None:
    with open("/proc/uptime") as file:
        uptime = float(file.read().split()[0])
    first = clock.boottime()
    assert 0 <= first - uptime < 5
    assert clock.boottime() >= first


def test_suspended_time_is_what_the_awake_clock_lacks() -> None:
    assert clock.suspended() >= 0
    slept = clock.boottime() - time.monotonic()
    assert clock.suspended() == pytest.approx(max(0.0, slept), abs=1)


class Sysctl:
    """Stands in for libc's sysctlbyname, which Linux lacks."""

    def __init__(self, value: bytes | None) -> None:
        self.value = value
        self.asked: list[bytes] = []

    def __call__(self, name: bytes, buffer: Any, size: Any, new: None, length: int) -> int:
        assert (size is not None, new, length) == (True, None, 0)
        self.asked.append(name)
        if self.value is None:
            ctypes.set_errno(2)
            return -1
        buffer.value = self.value
        return 0


def test_elsewhere_the_boot_id_comes_from_sysctl() -> None:
    sysctl = Sysctl(b"0E5C6A1F-27B6-4D4A-9B0E-7B1D1E3D4C55")
    assert clock.sysctl_text("kern.bootsessionuuid", sysctl) == (
        "0E5C6A1F-27B6-4D4A-9B0E-7B1D1E3D4C55"
    )
    assert sysctl.asked == [b"kern.bootsessionuuid"]


@pytest.mark.parametrize("value", [None, b"", b" \n"])
def test_a_boot_without_an_id_is_a_failed_look(value: bytes | None) -> None:
    with pytest.raises(EnumerationError) as caught:
        clock.sysctl_text("kern.bootsessionuuid", Sysctl(value))
    assert caught.value.backend == "process"


@linux_only
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /proc from a process")
def test_without_proc_there_is_no_boot_id_and_no_guess() -> None:
    program = (
        "from corral.errors import EnumerationError\n"
        "from corral.kernel import clock\n"
        "try:\n"
        "    clock.boot_id()\n"
        "except EnumerationError as error:\n"
        "    print(error.remedy)\n"
    )
    hidden = 'mount -t tmpfs none /proc && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", hidden, sys.executable, program],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout.decode().strip() == "mount /proc"
