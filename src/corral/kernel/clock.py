"""Which boot of the machine this is, and time that no change of the wall clock can bend."""

from __future__ import annotations

import sys
import time

from corral.errors import EnumerationError
from corral.kernel._rawfile import read_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_LIMIT = 256

# Clocks with and without the time that the machine was suspended. macOS has neither name of
# Linux: its raw clock goes on in sleep, its uptime stands still.
if sys.platform == "darwin":
    _ALL_TIME = time.CLOCK_MONOTONIC_RAW
    _AWAKE_TIME = time.CLOCK_UPTIME_RAW
else:
    _ALL_TIME = time.CLOCK_BOOTTIME
    _AWAKE_TIME = time.CLOCK_MONOTONIC

_known: list[str] = []


def boot_id() -> str:
    """The id of this boot of the machine: a UUID that is new after each start.

    Linux: /proc/sys/kernel/random/boot_id; macOS: kern.bootsessionuuid (kern.boottime moves when
    the wall clock is set). Read once per process. Raises EnumerationError.
    """
    if not _known:
        _known.append(_read_boot_id())
    return _known[0]


def boottime() -> float:
    """Seconds since the machine was started, suspension included (CLOCK_BOOTTIME)."""
    return time.clock_gettime(_ALL_TIME)


def suspended() -> float:
    """Seconds that the machine has been suspended since its start."""
    # the second reading is the later one, so a machine that never slept may come out below zero
    return max(0.0, time.clock_gettime(_ALL_TIME) - time.clock_gettime(_AWAKE_TIME))


def _read_boot_id() -> str:
    if sys.platform != "linux":
        return sysctl_text("kern.bootsessionuuid", _sysctlbyname())
    try:
        return _checked(read_all(_BOOT_ID_FILE), _BOOT_ID_FILE)
    except OSError as error:  # whatever the cause, without it no process can be named
        raise EnumerationError(
            f"the boot id cannot be read from {_BOOT_ID_FILE}: {error.strerror}",
            backend="process",
            remedy="mount /proc",
        ) from error


def sysctl_text(name: str, call: Callable[..., int]) -> str:
    """The text of one sysctl, asked through libc's `sysctlbyname`. Raises EnumerationError."""
    import ctypes

    buffer = ctypes.create_string_buffer(_LIMIT)
    size = ctypes.c_size_t(_LIMIT)
    if call(name.encode(), buffer, ctypes.byref(size), None, 0):
        raise EnumerationError(f"sysctl {name} cannot be read", backend="process")
    return _checked(buffer.value, name)


def _sysctlbyname() -> Any:
    import ctypes

    return ctypes.CDLL(None).sysctlbyname


def _checked(text: bytes, source: str) -> str:
    found = text.decode("ascii", "replace").strip()
    if not found:
        raise EnumerationError(f"the boot id in {source} is empty", backend="process")
    return found
