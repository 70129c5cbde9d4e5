"""Processes of this machine: seen in one look at the process table, ended through pidfds."""

from __future__ import annotations

import os
import time

from corral.backends.creating import being_created
from corral.backends.ending import end
from corral.backends.programs import watches_microvms
from corral.decide.ancestry import (
    Anchor,
    Look,
    Root,
    attribute_processes,
    describe,
    relevant,
    sight_process,
)
from corral.decide.approval import process_key
from corral.decide.keeping import is_kept
from corral.decide.protected import status_only
from corral.errors import EnumerationError, InvalidValueError
from corral.kernel import clock, listening, procfs
from corral.kernel import identity as identities
from corral.kernel.creators import at_work
from corral.model.environment import ClaimKind
from corral.model.process import Presence
from corral.model.record import RecordState
from corral.model.resource import BackendState, Kind, Mark, Observation, Proof, Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corral.contracts import RemovalContext, View
    from corral.model.process import ProcessIdentity, ProcessTable
    from corral.model.record import Record
    from corral.model.report import Outcome
    from corral.model.resource import Judgement

NAME = "process"
# A supervisor ends by itself once its tree is gone; this long is waited for that.
_SUPERVISOR_PATIENCE = 2.0
# A database writes down what it holds in memory before it ends.
_DATABASE_SECONDS = 20.0
_CONTAINER_RUNTIME = "container runtime"


class ProcessBackend:
    """The backend of processes: always there, quick to look, on this machine only."""

    name = NAME
    kinds = frozenset({Kind.PROCESS})
    local = True

    def observe(self, view: View) -> Observation:
        """Every recorded, descended or marked process, strangers on claimed ports, the runtime."""
        table = procfs.snapshot(brief=True)
        look = Look(table, _roots(view, table), _anchors(view), view.extra_programs)
        table = procfs.completed(table, relevant(look))
        look = look._replace(table=table)
        seen = [p for s in attribute_processes(look) if (p := _pinned(s)) is not None]
        strangers = _strangers(view, table, {int(s.id) for s in seen if not s.shared})
        known = {s.id for s in strangers}
        seen = [*(s for s in seen if s.id not in known), *strangers]
        microvms = _microvms(table, view)
        bound = [_bound_to_its_tree(s, seen, microvms, view) for s in seen]
        seen = [s for s in bound if int(s.id) not in microvms]
        detail = f"{len(table.rows)} processes"
        unseen = (*_being_created(view), *_elsewhere(view, table))
        return Observation(NAME, BackendState.OK, detail, (*seen, *unseen))

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """One process by its pid, with what protects it; None when there is none."""
        del kind
        table = procfs.snapshot()
        known = {str(pid): row for pid, row in table.rows.items()}
        row = known.get(identifier)
        if row is None or row.dead:
            return None
        roots, anchors = _roots(view, table), _anchors(view)
        sighting = sight_process(Look(table, roots, anchors, view.extra_programs), row.pid)
        return _pinned(sighting)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """TERM and CONT, wait, KILL, wait; databases after the others, supervisors at last."""
        workers = [t for t in targets if t.sighting.state != "supervisor"]
        supervisors = [t for t in targets if t.sighting.state == "supervisor"]
        outcomes = _end_workers(workers, context)
        busy = _still_supervising(supervisors, context)
        bereft = [t for t in supervisors if t.sighting.key not in {o.sighting.key for o in busy}]
        ended = end(bereft, context, patience=_SUPERVISOR_PATIENCE)
        return (*outcomes, *busy, *(_with_its_tree(outcome) for outcome in ended))


def _end_workers(targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
    """End what is no supervisor: database servers gently, after what may use them."""
    if not targets:
        return ()
    from corral.decide.databases import part

    parted = part(targets, procfs.snapshot(brief=True).rows)
    outcomes = end(parted.others, context)
    for signal, servers in parted.servers.items():
        left = context.deadline - time.monotonic()
        seconds = max(context.gentle, min(_DATABASE_SECONDS, left))
        outcomes += end(servers, context, first=signal, seconds=seconds)
    return (*outcomes, *(_with_its_tree(outcome) for outcome in end(parted.below, context)))


def _with_its_tree(outcome: Outcome) -> Outcome:
    """A supervisor, or a part of a server, that was gone by its turn ended with its tree."""
    if outcome.result != "already_gone":
        return outcome
    return outcome._replace(result="removed", reason="ended with its tree")


def _still_supervising(
    supervisors: Sequence[Judgement], context: RemovalContext
) -> tuple[Outcome, ...]:
    """The supervisors below which something lives that could not be ended."""
    if not supervisors:
        return ()
    from corral.backends.hoppers import chase
    from corral.model.report import Outcome

    view = context.view

    def evidence(table: ProcessTable) -> Look:
        return Look(table, _roots(view, table), _anchors(view), view.extra_programs)

    reasons = ((target, chase(target, context, evidence)) for target in supervisors)
    return tuple(Outcome(t.sighting, "remaining", reason) for t, reason in reasons if reason)


def _microvms(table: ProcessTable, view: View) -> Mapping[int, str]:
    """The microVMs among the processes, which a backend of their own sees and ends."""
    if not watches_microvms(view):
        return {}
    from corral.backends.microvm_processes import directories_in

    return directories_in(table, view)


def _recorded(view: View) -> Iterator[tuple[Record, ProcessIdentity]]:
    """The records of processes that were alive when they were written."""
    for record in view.records:
        if record.kind is Kind.PROCESS and record.state is RecordState.LIVE:
            try:
                yield record, identities.decode_identity(record.identity)
            except InvalidValueError:
                # Shown as a bad record by the registry's reader; it proves nothing.
                continue


def _roots(view: View, table: ProcessTable) -> tuple[Root, ...]:
    """The recorded processes that are alive, each checked with its pidfd inode."""
    found = []
    for record, pinned in _recorded(view):
        if table.find(pinned) is None:
            continue
        if identities.presence(pinned, boot_id=table.boot_id)[0] is not Presence.ALIVE:
            continue
        found.append(Root.of(record, pinned))
    return tuple(found)


def _anchors(view: View) -> tuple[Anchor, ...]:
    return tuple(
        Anchor(epoch.anchor, owner_id, released=epoch.released_at is not None)
        for owner_id, state in view.world.owners.items()
        for epoch in state.owner.epochs
        if epoch.anchor is not None
    )


def _pinned(sighting: Sighting) -> Sighting | None:
    """The sighting with its full identity, or None when the process ended since the look."""
    seen = identities.decode_identity(sighting.identity)
    try:
        now = identities.identify(seen.pid)
    except identities.ProcessGoneError:
        return None
    if not now.matches(seen):
        return None
    pairs = identities.encode_identity(now)
    return sighting._replace(identity=pairs, created_at=_started_at(now))


def _started_at(identity: ProcessIdentity) -> float | None:
    """When the process started, in unix time as the boot clock has it; None where it has none."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    age = clock.boottime() - identity.start_ticks / os.sysconf("SC_CLK_TCK")
    return round(time.time() - age, 2)


def _bound_to_its_tree(
    sighting: Sighting, seen: list[Sighting], microvms: Mapping[int, str], view: View
) -> Sighting:
    """A supervisor stays as long as something below it must be left: its end would end that."""
    if sighting.state != "supervisor":
        return sighting
    key = process_key(sighting)
    for other in seen:
        kept = other.kept or is_kept(other, view.kept)
        if key not in other.ancestors:
            continue
        if int(other.id) in microvms:
            reason = f"it supervises the microVM of process {other.id} and ends with it"
            return sighting._replace(protections=(*sighting.protections, reason))
        if kept or other.protections or other.doubts:
            reason = f"it supervises process {other.id}, which is left"
            return sighting._replace(protections=(*sighting.protections, reason))
    return sighting


def _strangers(view: View, table: ProcessTable, known: set[int]) -> list[Sighting]:
    """Unmarked listeners on ports that environments have claimed: shown, never touched."""
    claimed = {
        int(c.value): c
        for c in view.claims
        if c.kind is ClaimKind.PORT
        and c.scope == "tcp"
        and c.environment is not None
        and c.value.isdigit()
    }
    if not claimed:
        return []
    inodes = {s.inode: s.port for s in listening.listeners() if s.port in claimed}
    for pid in known:
        for inode in inodes.keys() & _inodes(pid):
            del inodes[inode]
    holders = _holders(table, known, inodes)
    table = procfs.completed(table, (pid for pid, _ in holders))
    return [_stranger(table, pid, port) for pid, port in holders if pid in table.rows]


def _inodes(pid: int) -> frozenset[int]:
    try:
        return listening.socket_inodes(pid)
    except EnumerationError:
        # Another user's process: whose sockets these are cannot be read.
        return frozenset()


def _holders(table: ProcessTable, known: set[int], inodes: dict[int, int]) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for row in table.rows.values() if inodes else ():
        if row.pid not in known and not row.dead:
            for inode in inodes.keys() & _inodes(row.pid):
                found[row.pid] = inodes[inode]
    return sorted(found.items())


def _stranger(table: ProcessTable, pid: int, port: int) -> Sighting:
    row = table.rows[pid]
    runtime = status_only(row) == _CONTAINER_RUNTIME
    return Sighting(
        kind=Kind.PROCESS,
        id=str(pid),
        name=describe(row),
        backend=NAME,
        state="running",
        created_at=None,
        identity=identities.encode_identity(table.identity(row)),
        doubts=(f"listens on the claimed port {port}, but carries no mark",),
        # An engine's proxy listens for a container: whose that is, the engine tells.
        protections=(f"{_CONTAINER_RUNTIME}: only ever shown",) if runtime else (),
    )


def _elsewhere(view: View, table: ProcessTable) -> list[Sighting]:
    """Recorded processes of another pid namespace, which cannot be looked at from here."""
    found = []
    for record, recorded in _recorded(view):
        if recorded.pid_namespace == table.pid_namespace:
            continue
        presence, why = identities.presence(recorded, boot_id=table.boot_id)
        if presence is Presence.UNKNOWN:
            mark = Mark(Proof.RECORDED, record.owner, record.session, record.environment)
            found.append(
                Sighting(
                    kind=Kind.PROCESS,
                    id=str(recorded.pid),
                    name=record.name,
                    backend=NAME,
                    state="unknown",
                    created_at=record.created_at,
                    identity=identities.encode_identity(recorded),
                    marks=(mark,),
                    doubts=(why,),
                    record=record.id,
                )
            )
    return found


def _being_created(view: View) -> list[Sighting]:
    """Intents whose creator may be at work."""
    return [
        being_created(record, NAME)
        for record in view.records
        if record.kind is Kind.PROCESS and at_work(record)
    ]
