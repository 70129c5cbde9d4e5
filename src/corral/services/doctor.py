"""What this machine offers, and what follows from what is missing."""

from __future__ import annotations

import os
import sys

from corral.errors import CorralError
from corral.kernel import identity, mounts, sockets
from corral.kernel.subreaper import become_subreaper
from corral.model.tuples import NamedTuple
from corral.services import equipment
from corral.services.equipment import Check
from corral.services.looking import observe_all
from corral.services.view import look
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import Backend
    from corral.model.resource import BackendReport
    from corral.services.context import Context


class Diagnosis(NamedTuple):
    """All checks, and how each backend's look went."""

    checks: tuple[Check, ...]
    backends: tuple[BackendReport, ...]


def diagnose(context: Context, backends: Callable[[Context], Sequence[Backend]]) -> Diagnosis:
    """Look at everything that corral rests on; changes nothing, and raises for nothing it finds.

    `backends` makes the backends for a context, which takes a registry that can be read.
    """
    checks = (
        _state_directory(context),
        _registry(context),
        _processes(),
        _subreaper(),
        _ports(context),
        _addresses(),
        _git(),
        _durability(),
        *equipment.checks(context),
    )
    return Diagnosis(checks, _looks(context, backends))


def _looks(
    context: Context, backends: Callable[[Context], Sequence[Backend]]
) -> tuple[BackendReport, ...]:
    try:
        every, view = backends(context), look(context, wide=True)
    except CorralError:
        # The registry's own check says why; without it the backends cannot be asked.
        return ()
    return observe_all(every, view).reports


def _state_directory(context: Context) -> Check:
    path = context.state_dir
    try:
        if not statedir.is_there(path):
            return Check("state directory", "ok", f"{path} (made when it is needed)")
        os.listdir(path)
    except CorralError as error:
        words = "no command that needs the registry works"
        return Check("state directory", "broken", error.message, words, error.remedy)
    except OSError as error:
        detail = f"{path} cannot be read: {error.strerror}"
        words = "no command that needs the registry works"
        return Check("state directory", "broken", detail, words, f"chmod u+rwx {path}")
    return Check("state directory", "ok", f"{path} on {mounts.filesystem_of(path) or 'a disk'}")


def _registry(context: Context) -> Check:
    try:
        with context.registry.read() as conn:
            (count,) = conn.execute("SELECT count(*) FROM environment").fetchone()
    except CorralError as error:
        words = "nothing can be claimed, recorded or judged"
        return Check("registry", "broken", error.message, words, error.remedy)
    return Check("registry", "ok", f"{count} environments")


def _processes() -> Check:
    if not hasattr(os, "pidfd_open") or sys.platform != "linux":
        return Check(
            "process identity",
            "limited",
            "no pidfd",
            "identity is read again right before each signal: a small race remains",
            "Linux 5.4 or newer has it" if sys.platform == "linux" else "",
        )
    if identity.own_identity().pidfd_inode is None:
        return Check(
            "process identity",
            "limited",
            "pidfd without unique inodes",
            "two processes that get one pid within one clock tick look the same",
            "Linux 6.9 or newer tells them apart",
        )
    return Check("process identity", "ok", "pidfd with unique inodes")


def _subreaper() -> Check:
    if sys.platform == "linux" and become_subreaper():
        return Check("subreaper", "ok", "corral run keeps hold of daemonised descendants")
    return Check(
        "subreaper",
        "limited",
        "not on this system",
        "a daemon that leaves its parents is known by its mark only",
    )


def _ports(context: Context) -> Check:
    pool = context.settings.pool
    first, last = sockets.ephemeral_range()
    words = f"pool {pool.first}-{pool.last}, ephemeral range {first}-{last}"
    if sys.platform != "linux":
        return Check(
            "ports", "limited", words, "ports are claimed and probed, but cannot be held open"
        )
    if pool.first <= last and first <= pool.last:
        return Check(
            "ports",
            "limited",
            words,
            "the two overlap: until its server listens, a stranger that asks the kernel for a "
            "free port may get a claimed one that is not held (UDP never is)",
            "set [pool] first and last outside of the ephemeral range",
        )
    return Check("ports", "ok", f"{words}; TCP is held from claim to listen, UDP is claimed only")


def _addresses() -> Check:
    if sys.platform == "linux":
        return Check("loopback addresses", "ok", "every 127.x.y.z answers")
    return Check(
        "loopback addresses",
        "limited",
        "only 127.0.0.1 answers",
        "corral up --address is refused",
        "for one of your own: sudo ifconfig lo0 alias 127.x.y.z",
    )


def _git() -> Check:
    for directory in os.get_exec_path():
        if os.access(os.path.join(directory, "git"), os.X_OK):
            return Check("git", "ok", os.path.join(directory, "git"))
    return Check(
        "git",
        "limited",
        "not found on PATH",
        "tracked env files cannot be told, so none is written",
        "install git, or put it on PATH",
    )


def _durability() -> Check:
    if sys.platform == "darwin":
        return Check(
            "durability", "limited", "fsync is not F_FULLFSYNC", "a power cut may lose the last row"
        )
    return Check("durability", "ok", "every record is on disk before anything is created")
