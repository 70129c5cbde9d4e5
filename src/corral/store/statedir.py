"""The state directory: where it is, and that nobody else can reach into it."""

from __future__ import annotations

import os
import stat
import sys

from corral.errors import StateDirectoryError
from corral.kernel.mounts import filesystem_of, is_network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MODE = 0o700
_CHOOSE = "set CORRAL_STATE_DIR to a directory of your own on a local disk"


def locate(environ: Mapping[str, str], home: str) -> str:
    """The state directory that these variables name. Nothing is created.

    CORRAL_STATE_DIR, else `corral` below XDG_STATE_HOME, else ~/.local/state/corral. An empty or
    relative XDG_STATE_HOME counts as unset (XDG Base Directory Specification). Raises
    StateDirectoryError for a CORRAL_STATE_DIR or a home that is no absolute path.
    """
    chosen = environ.get("CORRAL_STATE_DIR")
    if chosen is not None:
        return _absolute("CORRAL_STATE_DIR", chosen)
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(_absolute("the home directory", home), ".local", "state")
    return os.path.join(base, "corral")


def _absolute(name: str, value: str) -> str:
    if not os.path.isabs(value) or "\0" in value:
        raise StateDirectoryError(
            f"{name} is no absolute path: {value!r}", remedy=_CHOOSE, resource=value
        )
    return os.path.normpath(value)


def ensure(path: str) -> str:
    """Make the state directory (mode 0700) where it is missing, see that it is safe, return it.

    Raises StateDirectoryError with a remedy: see `is_there`; also when it cannot be made.
    """
    if not is_there(path):
        refuse_network(path)
        try:
            os.makedirs(os.path.dirname(path), _MODE, exist_ok=True)
            _make(path)
        except OSError as error:  # full, read-only, no permission, a file in the way
            raise _cannot("made", path, error) from error
        is_there(path)
    return path


def is_there(path: str) -> bool:
    """Whether the state directory exists; then it is safe, too.

    Raises StateDirectoryError with a remedy when it is a symlink or no directory, belongs to
    another user, can be written by others, lies on a network file system, or cannot be read.
    """
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError as error:  # no permission on the way, a file in the way, a loop of links
        raise _cannot("read", path, error) from error
    fault, remedy = _fault(path, found)
    if fault:
        raise StateDirectoryError(
            f"the state directory {path} {fault}", remedy=remedy, resource=path
        )
    # Reading the table of mounts takes longer than all the rest. What lies on a block device of
    # this machine's own can only be a cluster's file system, and that is seen to when the
    # registry is made.
    if sys.platform != "linux" or os.major(found.st_dev) == 0:
        refuse_network(path)
    return True


def _fault(path: str, found: os.stat_result) -> tuple[str, str]:
    """What makes the directory unsafe, and the remedy; two empty texts if nothing does."""
    me = os.geteuid()
    if stat.S_ISLNK(found.st_mode):
        return "is a symlink", f"name the directory itself: {_CHOOSE}"
    if not stat.S_ISDIR(found.st_mode):
        return "is no directory", _CHOOSE
    if found.st_uid != me:
        return f"belongs to user {found.st_uid}, and you are user {me}", _CHOOSE
    if found.st_mode & 0o022:
        return "can be written by other users", f"take that right away: chmod go-w {path}"
    return "", ""


def refuse_network(path: str) -> None:
    """Raise StateDirectoryError where the path lies on a file system that machines share."""
    kind = filesystem_of(path)
    if is_network(kind):
        raise StateDirectoryError(
            f"the state directory {path} lies on a network file system ({kind}), where locks and "
            "SQLite cannot be relied upon",
            remedy=_CHOOSE,
            resource=path,
        )


def _make(path: str) -> None:
    try:
        os.mkdir(path, _MODE)
    except FileExistsError:  # another corral was faster; it is looked at all the same
        return


def _cannot(what: str, path: str, error: OSError) -> StateDirectoryError:
    return StateDirectoryError(
        f"the state directory {path} cannot be {what}: {error.strerror}",
        remedy=f"free space or give the permission, or {_CHOOSE}",
        resource=path,
    )


def subdirectory(path: str) -> str:
    """Make a directory of one of the functions below (mode 0700) where it is missing; return it.

    Raises StateDirectoryError, also for a symlink or a foreign directory in its place.
    """
    try:
        _make(path)
        found = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise _cannot("made", path, error) from error
    fault, remedy = _fault(path, found)
    if fault:
        raise StateDirectoryError(f"the directory {path} {fault}", remedy=remedy, resource=path)
    return path


def registry_file(state_dir: str) -> str:
    """The SQLite database of owners, environments, claims and records."""
    return os.path.join(state_dir, "registry.sqlite3")


def gate_lock(state_dir: str) -> str:
    """The lock that every writer of the registry passes."""
    return os.path.join(state_dir, "gate.lock")


def lifecycle_lock(state_dir: str) -> str:
    """The lock around writing an intent, and around judging plus removing."""
    return os.path.join(state_dir, "lifecycle.lock")


def spool_dir(state_dir: str) -> str:
    """What could not pass the gate in time waits here for the next writer."""
    return os.path.join(state_dir, "spool")


def environments_dir(state_dir: str) -> str:
    """The parent of the environments' own directories."""
    return os.path.join(state_dir, "environments")


def environment_dir(state_dir: str, environment: str) -> str:
    """One environment's own directory, by the environment's id."""
    return os.path.join(state_dir, "environments", environment)


def kubeconfig(state_dir: str, environment: str) -> str:
    """The private kubeconfig of an environment's clusters."""
    return os.path.join(environment_dir(state_dir, environment), "kubeconfig")


def run_dir(state_dir: str) -> str:
    """The root below which microVMs have their configurations."""
    return os.path.join(state_dir, "run")


def building_dir(state_dir: str) -> str:
    """The files of the locks around making an environment and giving it up."""
    return os.path.join(state_dir, "building")


def locks_dir(state_dir: str) -> str:
    """The files of the locks that workers name."""
    return os.path.join(state_dir, "locks")


def witness(path: str, environment: str) -> str:
    """A second name of a file inside an environment's worktree; see services.environments."""
    return os.path.join(path, "witnesses", environment)
