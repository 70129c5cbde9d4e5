"""Which environment a directory is: minted once, kept through moves, new for copies and remakes."""

from __future__ import annotations

import os
import time

from corral.decide.gone import Traces
from corral.errors import InvalidValueError, NotFoundError
from corral.model.environment import Environment
from corral.services import witnesses
from corral.services.places import ID_FILE, borne_id, id_in, locate, read_gitdir, read_small
from corral.store import environments as table
from corral.store.registry import DEFAULT_TIMEOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from corral.model.environment import Output, Place
    from corral.model.record import Record
    from corral.services.context import Context


def new_environment_id() -> str:
    """A random id that names one environment for ever."""
    return f"env-{os.urandom(6).hex()}"


def find(context: Context) -> Environment | None:
    """The registered environment of the context's directory, or None; writes nothing."""
    place = locate(context.directory)
    with context.registry.read() as conn:
        return _registered(conn, place)


def require(context: Context) -> Environment:
    """Like `find`, but NotFoundError when there is none."""
    found = find(context)
    if found is None:
        raise NotFoundError(
            f"{context.directory} has no environment yet",
            remedy="run: corral up (or name another worktree with --env DIR)",
        )
    return found


def places(context: Context) -> dict[str, str]:
    """The directory of every environment's id."""
    with context.registry.read() as conn:
        known, _ = table.all_(conn)
    return {each.id: each.place.path for each in known}


def register(context: Context, *, timeout: float = DEFAULT_TIMEOUT) -> Environment:
    """The environment of the context's directory, minted or brought up to date. Idempotent.

    Raises HeldError when it has to be written and that cannot be done within `timeout` seconds.
    """
    place = locate(context.directory)
    with context.registry.read() as conn:
        found = _registered(conn, place)
    marked = place.kind == "path" or (found is not None and borne_id(place) == found.id)
    if found is not None and found.place == place and marked:
        return found
    with context.registry.write(timeout=timeout) as conn:
        environment = _resolve(conn, place, context.settings.namespace)
    witnesses.bear(context.state_dir, environment)
    return environment


def _registered(conn: Connection, place: Place) -> Environment | None:
    if place.kind == "path":
        return _by_path(conn, place.path, "path") or _moved(conn, place)
    borne = borne_id(place)
    if borne is None:
        # A torn id file: the registry still knows whose administrative entry this is.
        torn = os.path.lexists(os.path.join(place.admin, ID_FILE))
        return _by_path(conn, place.path, "git") if torn else None
    row = table.find(conn, borne)
    if row is None:
        return None
    if row.place.path != place.path and _is_copy(row, place):
        return None
    return row


def _by_path(conn: Connection, path: str, kind: str) -> Environment | None:
    rows, _ = table.all_(conn)
    found = [e for e in rows if e.place.path == path and e.place.kind == kind]
    return max(found, key=lambda e: e.created_at, default=None)


def _moved(conn: Connection, place: Place) -> Environment | None:
    """The environment of a plain directory that was moved here.

    The directory itself is the same one, and either bears the environment's id in a file that
    corral wrote or has a process of the environment's in it: an inode alone is given anew.
    """
    for row in table.all_(conn)[0]:
        known = row.place
        if known.kind != "path" or (known.device, known.inode) != (place.device, place.inode):
            continue
        if _present(known.path) is not False:
            continue
        from corral.store import records

        names = _names_of_blocks(row, table.outputs(conn, row.id))
        pids = _pids_of(records.of_environment(conn, row.id))
        if _bears(place.path, row, names) or place.path in _working_directories(pids):
            return row
    return None


def _pids_of(known: Iterable[Record]) -> list[int]:
    """The pids of the recorded processes that live."""
    from corral.kernel import clock, identity
    from corral.model.process import Presence
    from corral.model.record import RecordState
    from corral.model.resource import Kind

    found = []
    for record in known:
        if record.kind is not Kind.PROCESS or record.state is not RecordState.LIVE:
            continue
        try:
            process = identity.decode_identity(record.identity)
        except InvalidValueError:
            # Shown as a bad record elsewhere; it names no process.
            continue
        if identity.presence(process, boot_id=clock.boot_id())[0] is Presence.ALIVE:
            found.append(process.pid)
    return found


def _names_of_blocks(environment: Environment, outputs: Iterable[Output]) -> list[str]:
    top = environment.place.path
    return [os.path.relpath(o.path, top) for o in outputs if o.mode == "block"]


def _is_copy(row: Environment, place: Place) -> bool:
    """Whether the recorded path is still there and bears the same id: then `place` is a copy."""
    recorded = row.place.path
    if recorded == place.path or not os.path.isdir(recorded):
        return False
    try:
        other = locate(recorded)
    except NotFoundError:
        # The recorded worktree lost its administrative entry: it bears nothing.
        return False
    same_directory = (other.device, other.inode) == (place.device, place.inode)
    return other.path == recorded and not same_directory and borne_id(other) == row.id


def _resolve(conn: Connection, place: Place, namespace: str) -> Environment:
    found = _registered(conn, place)
    if found is not None:
        if place.kind == "git" and borne_id(place) != found.id:
            _write_id(place, found.id)
        if found.place != place:
            table.update_place(conn, found.id, place)
            _move_outputs(conn, found.id, found.place.path, place.path)
            found = found._replace(place=place)
        return found
    borne = borne_id(place)
    known = borne is not None and table.exists(conn, borne)
    identifier = borne if borne is not None and not known else new_environment_id()
    environment = Environment(identifier, place, os.urandom(16).hex(), time.time(), namespace)
    table.insert(conn, environment)
    if place.kind == "git" and borne != identifier:
        _write_id(place, identifier)
    return environment


def _move_outputs(conn: Connection, identifier: str, old: str, new: str) -> None:
    """What was written below a directory is found below the place that it was moved to."""
    for output in table.outputs(conn, identifier) if old != new else ():
        if output.path.startswith(f"{old}/"):
            table.forget_output(conn, identifier, output.path)
            moved = new + output.path.removeprefix(old)
            table.record_output(conn, output._replace(path=moved))


def _write_id(place: Place, identifier: str) -> None:
    from corral.kernel.paths import atomic_write

    atomic_write(os.path.join(place.admin, ID_FILE), f"{identifier}\n".encode())


def traces(
    state_dir: str, environment: Environment, outputs: Iterable[Output], pids: Iterable[int]
) -> Traces:
    """What the disk shows of an environment; `pids` are its recorded live processes."""
    from corral.kernel.mounts import parent_is_mounted

    place = environment.place
    directory = _directory_present(environment)
    admin = _admin_present(environment)
    if directory or admin:
        return Traces(admin, directory, parent_mounted=True)
    elsewhere = _seen_elsewhere(environment, outputs, pids)
    if not elsewhere and witnesses.still(state_dir, environment):
        elsewhere = "a place that nobody has told"
    return Traces(admin, directory, parent_is_mounted(place.path, place.device), elsewhere)


def _present(path: str) -> bool | None:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Forbidden or failing: nobody can tell.
        return None
    return True


def _directory_present(environment: Environment) -> bool | None:
    """Whether the recorded directory is there and does not bear another environment's id."""
    present = _present(environment.place.path)
    if not present:
        return present
    if environment.place.kind == "path":
        return True
    try:
        now = locate(environment.place.path)
    except NotFoundError:
        # A worktree without its entry is still somebody's directory.
        return True
    borne = borne_id(now) if now.path == environment.place.path else None
    return borne is None or borne == environment.id


def _admin_present(environment: Environment) -> bool | None:
    place = environment.place
    if place.kind != "git":
        return False
    present = _present(place.admin)
    if not present:
        return present
    return id_in(place.admin) == environment.id


def _seen_elsewhere(
    environment: Environment, outputs: Iterable[Output], pids: Iterable[int]
) -> str:
    """Where the directory went, if a sibling or a live process's directory is the same one.

    What stands at the recorded path itself is no other place: a worktree made again there often
    gets the old one's inode and the old one's administrative entry.
    """
    place = environment.place
    names = _names_of_blocks(environment, outputs)
    working = _working_directories(pids)
    for candidate in (*_siblings(place), *working):
        if candidate == place.path:
            continue
        try:
            status = os.stat(candidate)
        except OSError:
            # It vanished or is forbidden: no sign of our directory.
            continue
        same = (status.st_dev, status.st_ino) == (place.device, place.inode)
        stays = place.kind == "path" and candidate in working
        if same and (stays or _bears(candidate, environment, names)):
            return candidate
    return ""


def _siblings(place: Place) -> list[str]:
    parent = os.path.dirname(place.path)
    try:
        with os.scandir(parent) as entries:
            return [e.path for e in entries if e.inode() == place.inode]
    except OSError:
        # The parent is gone as well, so no sibling is left.
        return []


def _working_directories(pids: Iterable[int]) -> list[str]:
    found = []
    for pid in pids:
        try:
            path = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            # The process ended or is not ours to read.
            continue
        while path not in {"", "/"}:
            found.append(path)
            path = os.path.dirname(path)
    return found


def _bears(candidate: str, environment: Environment, names: list[str]) -> bool:
    """Whether a directory with the recorded inode (inodes are reused) is really the same one."""
    place = environment.place
    entry = os.path.join(candidate, ".git")
    if place.kind == "git":
        return id_in(entry) == environment.id or read_gitdir(entry) == place.admin
    return any(
        environment.id in (read_small(os.path.join(candidate, name)) or "") for name in names
    )
