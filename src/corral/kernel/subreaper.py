"""Orphans of a tree are handed to its supervisor, and a child can be told of its parent's death.

Both are Linux only (prctl(2): PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Let this process inherit the orphans of its tree; False where that cannot be had."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_parent_death_signal(signal: int) -> bool:
    """Have this process signalled when its parent dies; False where that cannot be had."""
    return _prctl(_PR_SET_PDEATHSIG, signal)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.prctl(option, value, 0, 0, 0)) == 0
