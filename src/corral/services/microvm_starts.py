"""Run directories of microVMs: made with an intent, so that whatever runs in them is known.

The configuration's path in the command line is the proof of whose a microVM is. So `corral run --
firecracker --config-file FILE` lets it read a copy below corral's run root, in a directory that
bears a nonce; Python callers get such a directory to put their own files into.
"""

from __future__ import annotations

import os
import time
from functools import partial

from corral.decide.microvms import (
    directory_below,
    is_firecracker,
    read_microvm_call,
    run_directory,
    with_directory,
)
from corral.kernel import identity, paths, procfs
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.services import lifecycle
from corral.services.announcing import Announced
from corral.services.service_records import new_record_id
from corral.store import records, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.environment import Environment
    from corral.services.context import Acting, Context
    from corral.services.launching import Launch

BACKEND = "firecracker"
ROLE = "run directory"
CONFIG, SOCKET = "vm.json", "s"
_SOCKET_LIMIT = 103  # bytes of a Unix socket's path that every system takes


class RunDirectory(NamedTuple):
    """A run directory that was just made, and its record."""

    path: str
    nonce: str
    record: str


def make_directory(context: Context, environment: Environment, acting: Acting) -> RunDirectory:
    """A new run directory of this worker's, with its intent written before it.

    While the caller lives and nothing runs in it, it counts as being created.
    Raises HeldError, RegistryError, StateDirectoryError and FileWriteError; no directory is left.
    """
    statedir.ensure(context.state_dir)
    with lifecycle.hold(context.state_dir, what="microvm"):
        root = statedir.subdirectory(statedir.run_dir(context.state_dir))
        path = os.path.join(root, f"vm-{os.urandom(6).hex()}")
        made = RunDirectory(path, os.urandom(16).hex(), new_record_id())
        with context.registry.write() as conn:
            records.insert(conn, _intent(made, environment, acting))
        paths.make_marked_directory(path, made.nonce)
    return made


def _intent(made: RunDirectory, environment: Environment, acting: Acting) -> Record:
    return Record(
        id=made.record,
        kind=Kind.MICROVM,
        backend=BACKEND,
        role=ROLE,
        name=os.path.basename(made.path),
        owner=acting.owner,
        session=acting.session,
        environment=environment.id,
        state=RecordState.INTENT,
        identity=(("path", made.path), ("nonce", made.nonce)),
        creator=identity.own_identity(),
        created_at=time.time(),
    )


def announce(context: Context, launch: Launch) -> Announced:
    """The launch with its configuration in a run directory of its own, where it has one."""
    argv = launch.request.argv
    call = read_microvm_call(argv)
    if call is None or directory_below(call.config, statedir.run_dir(context.state_dir)):
        return Announced(launch)
    try:
        content = _read(call.config)
    except OSError:
        # Firecracker itself says what is wrong with the file, and nothing runs then.
        return Announced(launch)
    made = make_directory(context, launch.environment, launch.acting)
    config = os.path.join(made.path, CONFIG)
    paths.atomic_write(config, content)
    socket = os.path.join(made.path, SOCKET)
    short = socket if len(os.fsencode(socket)) <= _SOCKET_LIMIT else ""
    words = () if short or call.has_socket else (f"its API socket is not in {made.path}",)
    moved = with_directory(argv, call, config, short)
    request = launch.request._replace(argv=moved)
    return Announced(launch._replace(request=request), words, partial(_settle, context, made))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _settle(context: Context, made: RunDirectory) -> tuple[str, ...]:
    """Remove the run directory of what has ended; why it stays, if it does."""
    root = statedir.run_dir(context.state_dir)
    for row in procfs.snapshot().rows.values():
        argv = row.argv or ()
        if is_firecracker(argv, row.exe) and run_directory(argv, root) == made.path:
            return (f"a microVM still runs in {made.path} (process {row.pid})",)
    failures = paths.remove_tree(made.path, made.nonce)
    if failures:
        return (f"the run directory is not removed: {failures[0]}",)
    with context.registry.write() as conn:
        records.delete(conn, made.record)
    return ()
