"""Campaign: many processes fight for one lock while they are killed at random.

`python -m support.crowd_locks DIRECTORY COUNT SECONDS`. Says how often the lock was taken, how many
were killed, how often two held it, and whether it was free at the end.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import sys
import time

from corral import acquire_conductor_mutex
from support.crowd import Crowd, say

_RELEASE = "v1.0"
_PLACE = struct.Struct("=QQQ")  # how often it was taken, the last fence, how often there were two


def fight(witness_path: str) -> None:
    """Take the lock again and again; look at a witness that only one holder can have."""
    # Descriptor 0 is the first that a killed process loses, so the witness goes before the lock.
    os.dup2(os.open(witness_path, os.O_RDWR | os.O_CREAT), 0)
    while True:
        blocking = random.random() < 0.5
        timeout = random.choice((None, 0.01, 1.0)) if blocking else None
        mutex = acquire_conductor_mutex(_RELEASE, blocking, timeout=timeout, scope="machine")
        if mutex is None:
            time.sleep(random.uniform(0, 0.002))
            continue
        _hold(mutex.fence)
        mutex.release()


def _hold(fence: int) -> None:
    taken, last, twice = _PLACE.unpack(os.pread(0, _PLACE.size, 0).ljust(_PLACE.size, b"\0"))
    try:
        fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        twice += 1
    twice += fence <= last
    os.pwrite(0, _PLACE.pack(taken + 1, fence, twice), 0)
    if random.random() < 0.1 and not os.fork():
        time.sleep(600)  # a child that outlives the holder must not keep the lock
    time.sleep(random.uniform(0, 0.003))
    fcntl.lockf(0, fcntl.LOCK_UN)


def main() -> None:
    """Run the campaign."""
    directory, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    witness = os.path.join(directory, "witness")
    os.chdir(directory)
    with Crowd(lambda _number: fight(witness), count) as crowd:
        crowd.harass(seconds, pause=0.01)
    begin = time.monotonic()
    free = acquire_conductor_mutex(_RELEASE, scope="machine") is not None
    with open(witness, "rb") as file:
        taken, _, twice = _PLACE.unpack(file.read())
    say(
        {
            "taken": taken,
            "killed": crowd.killed,
            "twice": twice,
            "free": free,
            "seconds": time.monotonic() - begin,
        }
    )


if __name__ == "__main__":
    main()
