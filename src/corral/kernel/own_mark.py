"""The mark that this very process wears, as everybody else sees it.

/proc/PID/environ shows the block that the kernel laid out at exec, whatever a program does to its
variables later. A supervisor is forked without an exec, so it would wear the mark of whoever called
corral, and be taken for a thing of theirs. The block is therefore written over.
"""

from __future__ import annotations

import sys

_NAME = b"CORRAL_OWNER="


def wear(owner: str) -> None:
    """Wear the mark of `owner` in place of an inherited one; without one there is nothing to do.

    A mark of another length is taken off instead: the block cannot grow.
    """
    if sys.platform != "linux":
        return
    from corral.kernel._rawfile import read_all

    if _NAME not in read_all("/proc/self/environ"):
        return
    import ctypes

    value = owner.encode()
    block = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    index = 0
    while address := block[index]:
        text = ctypes.string_at(address)
        if text.startswith(_NAME) and len(text) == len(_NAME) + len(value):
            ctypes.memmove(address + len(_NAME), value, len(value))
        elif text.startswith(_NAME):
            ctypes.memset(address, ord("_"), len(_NAME) - 1)
        index += 1
