"""Environments, their claims and the files written for them."""

from __future__ import annotations

from enum import Enum

from corral.model.process import ProcessIdentity
from corral.model.tuples import NamedTuple


class Place(NamedTuple):
    """Where an environment is, as found on disk.

    `kind`: "git" (identity in the administrative directory `admin`) or "path" (identity by real
    path). `main` is the main checkout's path, `worktree` the worktree's own name, `is_main` whether
    this is the main checkout. `device`, `inode`: of the directory.
    """

    path: str
    kind: str
    admin: str
    common: str
    main: str
    repository: str
    worktree: str
    is_main: bool
    device: int
    inode: int


class Environment(NamedTuple):
    """What belongs to one worktree or plain directory. `nonce` marks its state directory."""

    id: str
    place: Place
    nonce: str
    created_at: float
    namespace: str = "corral"


class Existence(Enum):
    """What is proven of an environment's directory."""

    PRESENT = "present"
    GONE = "gone"
    UNKNOWN = "unknown"


class EnvironmentState(NamedTuple):
    """An environment with what is proven of it, the reason, and the owners that live in it."""

    environment: Environment
    existence: Existence
    reason: str
    living: frozenset[str] = frozenset()


class ClaimKind(Enum):
    """What can be claimed."""

    PORT = "port"
    ADDRESS = "address"
    NAME = "name"
    DATABASE = "database"


class Claim(NamedTuple):
    """Something reserved for an environment, or for a process (`holder`).

    `scope` keeps equal values apart: the protocol and address of a port ("tcp", "tcp@127.1.2.3"),
    the place of a name ("compose", "schema", "cluster"). `name` is what the claimant calls it.
    """

    kind: ClaimKind
    scope: str
    value: str
    name: str
    environment: str | None
    holder: ProcessIdentity | None
    worker: str
    created_at: float
    detail: str = ""


class Output(NamedTuple):
    """What `up` wrote: its `mode`, and a `digest` of the content.

    `mode`: block, file, link, copy, exclude, or directory (one that was made for a file).
    """

    environment: str
    path: str
    mode: str
    digest: str
