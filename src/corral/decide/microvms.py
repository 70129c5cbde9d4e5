"""Firecracker microVMs: which processes are ours, and whose they are.

There is no list of microVMs anywhere. One is known by its command line: the configuration (or the
API socket) lies in a run directory below corral's run root, which only corral makes.
"""

from __future__ import annotations

import posixpath
from itertools import pairwise

from corral.model.resource import Kind, Mark, Proof, Sighting
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.model.record import Record

PROGRAM = "firecracker"
_OPTIONS = ("--config-file", "--api-sock")
Pairs = tuple[tuple[str, str | int], ...]


class MicroVMCall(NamedTuple):
    """A command line that starts a microVM: the place of its configuration, and its API socket."""

    config_at: int
    config: str
    has_socket: bool


class Running(NamedTuple):
    """A microVM that runs: `identity` of its process, and its run directory."""

    pid: int
    identity: Pairs
    directory: str
    keep: bool = False


class RunDirectory(NamedTuple):
    """A run directory as it was found: `nonce` None where it bears none, `there` False: gone."""

    path: str
    there: bool
    nonce: str | None = None


class Known(NamedTuple):
    """What the registry knows: run directories by path, processes by identity, environments.

    `creating`: ids of records whose creators live. `kept`: names of what is to be kept.
    """

    directories: Mapping[str, Record] = {}
    processes: Mapping[Pairs, Record] = {}
    environments: frozenset[str] = frozenset()
    creating: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


def is_firecracker(argv: Sequence[str], exe: str) -> bool:
    """Whether a process runs Firecracker, under its own name or that of a release."""
    names = (posixpath.basename(exe), posixpath.basename(argv[0]) if argv else "")
    return any(name == PROGRAM or name.startswith(f"{PROGRAM}-v") for name in names)


def run_directory(argv: Sequence[str], root: str) -> str:
    """The directory directly below `root` that the command line leads to, or ""."""
    for option in _OPTIONS:
        path = _value(argv, option)
        found = directory_below(path, root)
        if found:
            return found
    return ""


def directory_below(path: str, root: str) -> str:
    """The directory directly below `root` in which an absolute path lies, or ""."""
    begin = f"{root.rstrip('/')}/"
    plain = posixpath.normpath(path) if path.startswith("/") else ""
    name, _, rest = plain.removeprefix(begin).partition("/")
    return f"{begin}{name}" if plain.startswith(begin) and name and rest else ""


def read_microvm_call(argv: Sequence[str]) -> MicroVMCall | None:
    """What a command line of Firecracker is about to start; None for anything else."""
    if not argv or not is_firecracker(argv, ""):
        return None
    for at, word in enumerate(argv[:-1]):
        if word == "--config-file":
            socket = bool({"--api-sock", "--no-api"} & set(argv))
            return MicroVMCall(at + 1, argv[at + 1], socket)
    return None


def with_directory(
    argv: Sequence[str], call: MicroVMCall, config: str, socket: str
) -> tuple[str, ...]:
    """The command line with its configuration, and its API socket where it names none, moved."""
    moved = (*argv[: call.config_at], config, *argv[call.config_at + 1 :])
    return moved if call.has_socket or not socket else (*moved, "--api-sock", socket)


def _value(argv: Sequence[str], option: str) -> str:
    # a process that ends, or is just about to execute, shows no words at all
    for word, following in pairwise((*argv, "")):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return ""


def sight_microvm(vm: Running, found: RunDirectory, known: Known, backend: str) -> Sighting:
    """What is seen of a microVM that runs."""
    record = known.directories.get(vm.directory)
    process = known.processes.get(_without_inode(vm.identity))
    marks, doubts = _proof(record, found, known)
    if process is not None:
        environment = _existing(process.environment, known)
        marks = (Mark(Proof.RECORDED, process.owner, None, environment), *marks)
        doubts = ()
    name = posixpath.basename(vm.directory)
    return Sighting(
        kind=Kind.MICROVM,
        id=name,
        name=(process.name if process is not None else "") or name,
        backend=backend,
        state="running",
        created_at=record.created_at if record is not None else None,
        identity=vm.identity,
        marks=marks,
        doubts=doubts,
        kept=vm.keep or name in known.kept,
        record=process.id if process is not None else None,
    )


def sight_directory(
    found: RunDirectory, known: Known, microvm: Sighting | None, backend: str
) -> Sighting:
    """What is seen of a run directory; what holds its microVM holds the directory, too."""
    record = known.directories.get(found.path)
    marks, doubts = _proof(record, found, known)
    held: tuple[str, ...] = ()
    if microvm is not None and microvm.doubts and not doubts:
        held = (f"its microVM is left: {microvm.doubts[0]}",)
    name = posixpath.basename(found.path)
    return Sighting(
        kind=Kind.DIRECTORY,
        id=found.path,
        name=name,
        backend=backend,
        state="in use" if microvm is not None else "unused",
        created_at=record.created_at if record is not None else None,
        identity=(("path", found.path), ("nonce", found.nonce or "")),
        marks=tuple(mark._replace(proof=Proof.PATH) for mark in marks),
        doubts=(*doubts, *held),
        kept=name in known.kept or (microvm is not None and microvm.kept),
        creating=record is not None and record.id in known.creating and microvm is None,
        record=record.id if record is not None else None,
    )


def _proof(
    record: Record | None, found: RunDirectory, known: Known
) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """The marks that a run directory gives, and the doubts about them."""
    owner = record.owner if record is not None else None
    environment = _existing(record.environment, known) if record is not None else None
    if not found.there:
        return (Mark(Proof.RUN_DIRECTORY_GONE, owner, None, environment),), ()
    mark = Mark(Proof.ARGV, owner, None, environment)
    if record is None:
        return (mark,), ("the registry knows no microVM of this run directory",)
    if nonce_of(record) != found.nonce:
        return (mark,), ("its run directory does not bear the nonce that the registry knows",)
    return (mark,), ()


def nonce_of(record: Record) -> str:
    """The nonce of a recorded run directory."""
    return str(dict(record.identity).get("nonce", ""))


def directory_of(record: Record) -> str:
    """The path of a recorded run directory."""
    return str(dict(record.identity).get("path", ""))


def _existing(environment: str | None, known: Known) -> str | None:
    return environment if environment in known.environments else None


def _without_inode(identity: Pairs) -> Pairs:
    return tuple(pair for pair in identity if pair[0] != "pidfd_inode")
