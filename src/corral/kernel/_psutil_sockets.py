"""Listening sockets from psutil, where there is no /proc (macOS, BSD).

There are no socket inodes there: address and port, which one listener has, stand in for them.
"""

from __future__ import annotations

import psutil

from corral.errors import EnumerationError
from corral.kernel.listening import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def listeners() -> tuple[Listener, ...]:
    """The listening TCP sockets of all processes that this user may look into."""
    found: set[Listener] = set()
    for process in psutil.process_iter():
        try:
            found.update(_of(process))
        except psutil.Error:  # it has ended, or is another user's
            continue
    return tuple(sorted(found))


def socket_inodes(pid: int) -> frozenset[int]:
    """What stands in for the inodes of a process's listening sockets; none if it has ended.

    Raises EnumerationError if this user may not look into it.
    """
    try:
        return frozenset(one.inode for one in _of(psutil.Process(pid)))
    except psutil.NoSuchProcess:
        return frozenset()
    except psutil.Error as error:
        raise EnumerationError(
            f"the sockets of process {pid} cannot be read: {error}",
            backend="process",
            resource=str(pid),
        ) from error


def _of(process: psutil.Process) -> Iterator[Listener]:
    for one in process.net_connections("tcp"):
        if one.status == psutil.CONN_LISTEN:
            address, port = one.laddr
            yield Listener(address, port, _stand_in(address, port))


def _stand_in(address: str, port: int) -> int:
    return int.from_bytes(f"{address} {port}".encode())
