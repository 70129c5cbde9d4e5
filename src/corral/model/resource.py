"""Resources, the marks they carry, and what the judge says of them."""

from __future__ import annotations

from enum import Enum

from corral.model.tuples import NamedTuple

# What a process that is kept is remembered by.
KEPT_BY = ("pid", "start_ticks", "boot_id", "pid_namespace")


class Kind(Enum):
    """The kinds of resources, in the order in which they are removed.

    The last, a container engine, is part of the shared runtime: shown and never removed.
    """

    PROCESS = "process"
    MICROVM = "microvm"
    CLUSTER = "cluster"
    CONTAINER = "container"
    NETWORK = "network"
    VOLUME = "volume"
    SCHEMA = "schema"
    DATABASE = "database"
    FILE = "file"
    DIRECTORY = "directory"
    ENGINE = "engine"


class Proof(Enum):
    """How a resource shows whose it is; the words appear in the journal."""

    RECORDED = "recorded by corral run"
    DESCENT = "descends from a recorded process"
    CHAIN = "carries the mark and its parents lead to the owner's anchor"
    DETACHED = "carries the mark, was detached from its parents and has no terminal"
    LABEL = "carries the exact label"
    PROJECT = "carries the claimed compose project"
    NAME = "has the exact name that was claimed"
    PATH = "lies below the environment's state directory and bears its nonce"
    COMMENT = "carries the mark in its comment"
    ARGV = "its configuration lies below corral's run root"
    RUN_DIRECTORY_GONE = "its run directory is gone"


class Verdict(Enum):
    """What the judge says: take it down, leave it, or nobody can tell (so leave it)."""

    REAP = "REAP"
    KEEP = "KEEP"
    UNKNOWN = "UNKNOWN"


class Mark(NamedTuple):
    """One proof that a resource carries: who or what it belongs to, exactly as read.

    One of `owner` (corral's id), `session` (an exact session id) and `environment` is set, or
    several; `proof` says how it was shown.
    """

    proof: Proof
    owner: str | None = None
    session: str | None = None
    environment: str | None = None


class Stack(NamedTuple):
    """A compose stack: when its oldest container was made, and which owners intended it."""

    oldest: float
    intents: frozenset[str]


class Sighting(NamedTuple):
    """One resource as a backend saw it, before anybody judged.

    `id` is the backend's own full id, `identity` the pairs that pin exactly this one (an id that
    was given to another thing has other pairs). `doubts` are reasons why a mark cannot be
    believed (any: UNKNOWN), `protections` reasons why it must not be touched whatever it carries
    (any: KEEP). `creating`: an intent whose creator lives. `data`: holds data, so only `down` and
    `cleanup --data` take it. `shared`: part of the shared runtime, shown only.
    `record` is the registry's row that led here. `ancestors` are the (pid, start ticks) above a
    process. `stack` describes the compose stack of a thing that its environment owns.
    """

    kind: Kind
    id: str
    name: str
    backend: str
    state: str
    created_at: float | None
    identity: tuple[tuple[str, str | int], ...]
    marks: tuple[Mark, ...] = ()
    doubts: tuple[str, ...] = ()
    protections: tuple[str, ...] = ()
    kept: bool = False
    creating: bool = False
    data: bool = False
    shared: bool = False
    record: str | None = None
    ancestors: tuple[tuple[int, int], ...] = ()
    stack: Stack | None = None

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str | int], ...]]:
        """What approval is compared by: kind, id and the pinned identity, never a name."""
        return (self.kind.value, self.id, self.identity)

    @property
    def keep_id(self) -> str:
        """The id under which `corral keep` remembers it; a process by more than its bare pid."""
        if self.kind is not Kind.PROCESS:
            return self.id
        pairs = dict(self.identity)
        return "@".join(str(pairs.get(k, "")) for k in KEPT_BY)


class Judgement(NamedTuple):
    """A sighting with its verdict, the reason, and whose it is as far as is proven."""

    sighting: Sighting
    verdict: Verdict
    reason: str
    code: str
    owner: str | None = None
    session: str | None = None
    environment: str | None = None
    proof: Proof | None = None
    stop_only: bool = False


class BackendState(Enum):
    """ok: looked; absent: not installed here; failed: could not look."""

    OK = "ok"
    ABSENT = "absent"
    FAILED = "failed"


class BackendReport(NamedTuple):
    """How one backend's look went; `detail` is the backend's own words."""

    name: str
    state: BackendState
    detail: str = ""


class Observation(NamedTuple):
    """What one backend saw: every marked thing, and the shared runtime it lives in.

    `gone`: ids of records of which it is proven that they name nothing any more.
    """

    backend: str
    state: BackendState
    detail: str
    sightings: tuple[Sighting, ...] = ()
    gone: tuple[str, ...] = ()
