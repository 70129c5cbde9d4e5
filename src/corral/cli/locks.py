"""`corral locks`: every lock that is held now, by whom, since when and where."""

from __future__ import annotations

import time

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.decide.durations import format_age
from corral.services.locks import held_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.model.lock import LockState


_HEADS = ("NAME", "SCOPE", "FENCE", "HOLDER", "SINCE", "SESSION", "DIRECTORY", "COMMAND")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments: there are none."""
    del parser, command


def run(arguments: Namespace) -> Answer:
    """Look and answer."""
    found = held_locks(context_of(arguments, anywhere=True))
    return Answer({"locks": [row(state) for state in found]}, lambda: _text(found))


def row(state: LockState) -> dict[str, Any]:
    """A held lock as a row of `locks.data`; None is what its holder has not said."""
    lock, holder = state.lock, state.holder
    return {
        "name": lock.name if lock else None,
        "scope": lock.scope.value if lock else None,
        "place": (lock.place or None) if lock else None,
        "path": state.path,
        "fence": holder.fence,
        "holder": {
            "pid": holder.pid,
            "command": holder.command,
            "since": holder.since,
            "owner": holder.owner,
            "session": holder.session,
            "directory": holder.directory or None,
        },
    }


def _text(found: tuple[LockState, ...]) -> str:
    now = time.time()
    cells = [_cells(state, now) for state in found]
    return columns(cells, _HEADS) or "no lock is held\n"


def _cells(state: LockState, now: float) -> tuple[str, ...]:
    lock, holder = state.lock, state.holder
    return (
        lock.name if lock else "(not named yet)",
        (lock.place or "machine") if lock else "-",
        f"fence {holder.fence}" if holder.fence is not None else "-",
        f"process {holder.pid}",
        format_age(now - holder.since) if holder.since is not None else "-",
        holder.session or "-",
        holder.directory or "-",
        holder.command or "-",
    )
