"""Wait until a started server listens on its own ports, and say what happened when it does not."""

from __future__ import annotations

import os
import time

from corral.decide.ancestry import describe
from corral.decide.offspring import descendants
from corral.decide.ready import Heard, describe_port, describe_socket, sort_out
from corral.errors import EnumerationError, RunError
from corral.kernel import procfs, sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corral.decide.ready import Seen, Wanted
    from corral.model.process import ProcessTable

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25
_GROWTH = 1.3


class Watch:
    """Looks at the wanted ports of one started tree.

    `roots`: pids of the tree's topmost processes. `also_ours(port)` tells listeners of
    this environment that are no processes of the tree, such as a container's. `accepts()` tells
    whether a server that was given listening sockets takes connections from them.
    """

    def __init__(
        self,
        wanted: tuple[Wanted, ...],
        host: str,
        roots: tuple[int, ...],
        *,
        also_ours: Callable[[int], bool] | None = None,
        accepts: Callable[[], bool] | None = None,
    ) -> None:
        self.wanted = wanted
        self.host = host
        self._roots = roots
        self._also_ours = also_ours
        self._accepts = accepts
        self._suspects: frozenset[Heard] = frozenset()
        self.pause = FIRST_PAUSE

    def ready(self) -> Seen | None:
        """One look: what was seen once all is ready, else None.

        Raises RunError as soon as somebody else's server is sure to be on a wanted port.
        """
        self.pause = min(self.pause * _GROWTH, LONGEST_PAUSE)
        if self._silent():
            return None
        seen = self.look()
        if seen.ready:
            return seen if self._accepts is None or self._accepts() else None
        # Seen twice: a listener of ours may have closed between the two parts of one look.
        again = self._suspects.intersection(seen.foreign)
        self._suspects = frozenset(seen.foreign)
        if again:
            raise RunError(self._foreign(seen), remedy="end it, or claim another port")
        return None

    def _silent(self) -> bool:
        """Whether a wanted port has no listener at all: the usual case, and quick to see."""
        listening = {one.port for one in sockets.listeners()}
        return any(each.number not in listening for each in self.wanted)

    def look(self) -> Seen:
        """What the listening sockets of this machine mean for the wanted ports."""
        listeners = sockets.listeners()
        table = procfs.snapshot()
        inodes = tree_sockets(table, self._roots)
        numbers = {each.number for each in self.wanted}
        heard = tuple(
            Heard(one.address, one.port, one.inode, one.inode in inodes or self._claimed(one.port))
            for one in listeners
            if one.port in numbers or one.inode in inodes
        )
        return sort_out(self.wanted, self.host, heard)

    def _claimed(self, port: int) -> bool:
        return self._also_ours is not None and self._also_ours(port)

    def never(self, seconds: float) -> str:
        """Why it is not ready after `seconds`, in words.

        Sockets that were handed over listen from the start: only what accepts is ready then.
        """
        seen = self.look()
        if seen.foreign:
            return self._foreign(seen)
        text = f"not ready within {seconds:g} s: "
        places = ", ".join(describe_socket(h) for h in seen.elsewhere)
        ports = ", ".join(describe_port(each) for each in seen.silent or self.wanted)
        if not seen.silent:
            text += (
                f"it does not accept connections on the socket of port {ports} that it was given"
            )
            return f"{text}, and listens on {places} instead" if places else text
        if places:
            return f"{text}it listens on {places}, not on port {ports}"
        return f"{text}nothing listens on port {ports}"

    def _foreign(self, seen: Seen) -> str:
        theirs = seen.foreign[0]
        name = next(w for w in self.wanted if w.number == theirs.port)
        text = (
            f"port {describe_port(name)} is answered by {whose(theirs.inode)}, "
            "which is not what was started"
        )
        if not seen.elsewhere:
            return text
        places = ", ".join(describe_socket(h) for h in seen.elsewhere)
        return f"{text}; that listens on {places}"


def wait_until_ready(watch: Watch, seconds: float, ended: Callable[[float], str]) -> Seen:
    """Wait for the tree's own listeners on all wanted ports.

    `ended(pause)` waits that long and says how the tree ended, "" while it lives.
    Raises RunError when it ended, when a foreign server is there, or when time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = watch.ready()
        if seen is not None:
            return seen
        left = deadline - time.monotonic()
        if left <= 0:
            raise RunError(watch.never(seconds))
        words = ended(min(watch.pause, left))
        if words:
            raise RunError(f"{words} before it was ready")


def tree_sockets(table: ProcessTable, roots: Iterable[int]) -> frozenset[int]:
    """The inodes of the sockets of these processes and of all below them."""
    found: frozenset[int] = frozenset()
    for root in roots:
        for pid in (root, *(row.pid for row in descendants(table, root))):
            try:
                found |= sockets.socket_inodes(pid)
            except EnumerationError:
                # A program that may not be looked into (a setuid one): none of it is proven ours.
                continue
    return found


def whose(inode: int) -> str:
    """Who has the socket, in words."""
    table = procfs.snapshot()
    for row in table.rows.values():
        try:
            if row.pid != os.getpid() and inode in sockets.socket_inodes(row.pid):
                return f"process {row.pid} ({describe(row)})"
        except EnumerationError:
            # It may not be looked into; if it is the one, it stays unnamed.
            continue
    return "a process that this user cannot see"
