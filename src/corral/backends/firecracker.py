"""Firecracker microVMs and their run directories.

A microVM is ended through its pidfd, and only while it is still exactly that: its command line is
read once more after it was pinned. Its run directory goes by the nonce in it.
"""

from __future__ import annotations

import os

from corral.backends import microvm_processes as processes
from corral.backends.ending import end
from corral.backends.programs import FIRECRACKER, watches_microvms
from corral.decide import microvms as rules
from corral.errors import EnumerationError
from corral.kernel import paths, procfs
from corral.kernel.creators import at_work
from corral.model.record import RecordState
from corral.model.report import Outcome
from corral.model.resource import BackendState, Kind, Observation
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.contracts import RemovalContext, View
    from corral.kernel.pidfd import Pinned
    from corral.model.resource import Judgement, Sighting

NAME = FIRECRACKER
_CGROUPS = "/sys/fs/cgroup"


class FirecrackerBackend:
    """The backend of microVMs; on this machine only, and quick to look."""

    name = NAME
    kinds = frozenset({Kind.MICROVM, Kind.DIRECTORY})
    local = True

    def observe(self, view: View) -> Observation:
        """Every microVM below corral's run root, and every run directory."""
        if not watches_microvms(view):
            reason = "no microVM was started through corral"
            return Observation(NAME, BackendState.ABSENT, reason)
        known = _known(view)
        vms = list(processes.running(procfs.snapshot(), view))
        found = {path: _found(path) for path in _directories(view)}
        machines = []
        by_directory: dict[str, Sighting] = {}
        for vm in vms:
            directory = found.get(vm.directory) or _found(vm.directory)
            seen = rules.sight_microvm(vm, directory, known, NAME)
            machines.append(seen)
            by_directory[vm.directory] = seen
        places = [
            rules.sight_directory(each, known, by_directory.get(path), NAME)
            for path, each in found.items()
        ]
        gone = tuple(
            r.id
            for path, r in known.directories.items()
            if path not in found and path not in by_directory and r.id not in known.creating
        )
        detail = f"{len(machines)} microVMs, {len(places)} run directories"
        return Observation(NAME, BackendState.OK, detail, (*machines, *places), gone)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """One microVM or run directory by its id or name."""
        seen = (s for s in self.observe(view).sightings if s.kind is kind)
        return next((s for s in seen if identifier in {s.id, s.name}), None)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """End the microVMs, or remove the run directories that nothing runs in any more."""
        if targets and targets[0].sighting.kind is Kind.MICROVM:
            jails = processes.jails_of(context.view.state_dir)
            root = statedir.run_dir(context.view.state_dir)
            return end(targets, context, still=lambda pinned: _still(pinned, root, jails))
        in_use = set(processes.directories_in(procfs.snapshot(), context.view).values())
        return tuple(_remove_directory(t, context, in_use) for t in targets)


def _still(pinned: Pinned, root: str, jails: dict[tuple[int, int], str]) -> str:
    """Whether a pinned process is a microVM of corral's, read after it was pinned.

    Raises EnumerationError when that cannot be read: then it may be anything.
    """
    pid = pinned.identity.pid
    try:
        handle = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            row = procfs.read_row(handle, pid, os.geteuid())
        finally:
            os.close(handle)
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it ended: whoever signals it will find nobody
    except OSError as error:
        raise EnumerationError(
            f"process {pid} cannot be read again: {error.strerror}", backend=NAME
        ) from error
    if row is None or row.dead or processes.directory_of(row, root, jails):
        return ""
    return "it is no microVM of corral's any more"


def _remove_directory(target: Judgement, context: RemovalContext, in_use: set[str]) -> Outcome:
    sighting = target.sighting
    if sighting.id in in_use:
        return Outcome(sighting, "remaining", "a microVM still runs in it")
    doubt = context.confirm(target)
    if doubt:
        return Outcome(sighting, "left", doubt)
    jails = [(program, jail) for program, jail in processes.jails_in(sighting.id)]
    failures = paths.remove_tree(sighting.id, str(dict(sighting.identity)["nonce"]))
    if not failures:
        failures = [f for program, jail in jails for f in _remove_cgroups(program, jail)]
    if failures:
        return Outcome(sighting, "remaining", failures[0])
    return Outcome(sighting, "removed", "removed")


def _remove_cgroups(program: str, jail: str) -> list[str]:
    """The control groups that the jailer made for a jail and leaves behind: PROGRAM/ID."""
    own = os.path.join(program, os.path.basename(os.path.dirname(jail)))
    failures = []
    for hierarchy in ("", *_names(_CGROUPS)):
        path = os.path.join(_CGROUPS, hierarchy, own)
        try:
            os.rmdir(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:  # somebody is still in it
            failures.append(f"the control group {path}: {error.strerror}")
    return failures


def _known(view: View) -> rules.Known:
    environments = frozenset(view.world.environments)
    records = [r for r in view.records if r.backend == NAME and r.kind is Kind.MICROVM]
    return rules.Known(
        {rules.directory_of(r): r for r in records},
        {
            tuple(pair for pair in r.identity if pair[0] != "pidfd_inode"): r
            for r in view.records
            if r.kind is Kind.PROCESS and r.state is RecordState.LIVE
        },
        environments,
        frozenset(r.id for r in records if at_work(r)),
        frozenset(name for kind, name in view.kept if kind == Kind.MICROVM.value),
    )


def _directories(view: View) -> list[str]:
    root = statedir.run_dir(view.state_dir)
    try:
        # A removal that was cut short leaves a name with a dot, which the next one clears.
        names = sorted(n for n in os.listdir(root) if not n.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        what = f"the run root {root} cannot be listed: {error.strerror}"
        raise EnumerationError(what, backend=NAME) from error
    return [os.path.join(root, name) for name in names]


def _found(path: str) -> rules.RunDirectory:
    return rules.RunDirectory(path, os.path.lexists(path), paths.read_nonce(path))


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:  # no control groups here
        return []
