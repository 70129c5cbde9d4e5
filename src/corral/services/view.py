"""One reading of the registry, with what is proven of every owner and environment."""

from __future__ import annotations

import os
import time

from corral.contracts import View
from corral.decide.gone import judge_environment
from corral.decide.judge import World
from corral.decide.over import judge_owner, newly_ended
from corral.errors import HeldError, RegistryError
from corral.kernel import identity
from corral.model.environment import EnvironmentState
from corral.model.owner import End
from corral.model.record import RecordState
from corral.model.resource import Kind
from corral.services.environments import traces
from corral.services.owners import boot_clock
from corral.store import claims, environments, owners, records, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from sqlite3 import Connection

    from corral.decide.over import BootClock
    from corral.model.environment import Environment, Existence, Output
    from corral.model.owner import Owner, OwnerState
    from corral.model.process import Presence, ProcessIdentity
    from corral.model.record import BadRecord, Record
    from corral.services.context import Context


class _Presences:
    """Presence of anchors, each looked up once per reading."""

    def __init__(self, boot_id: str) -> None:
        self._boot_id = boot_id
        self._known: dict[ProcessIdentity, tuple[Presence, str]] = {}

    def __call__(self, anchor: ProcessIdentity) -> tuple[Presence, str]:
        if anchor not in self._known:
            self._known[anchor] = identity.presence(anchor, boot_id=self._boot_id)
        return self._known[anchor]


def look(context: Context, *, wide: bool = False) -> View:
    """Read the registry once and judge its owners and environments; writes nothing."""
    now = boot_clock()
    with context.registry.read() as conn:
        known_owners, bad_owners = owners.all_(conn)
        known_environments, bad_environments = environments.all_(conn)
        known_records, bad_records = records.all_(conn)
        known_claims, bad_claims = claims.all_(conn)
        kept = records.kept(conn)
        outputs = {
            e.id: environments.outputs(conn, e.id)
            for e in known_environments
            if not _plainly_there(e)
        }
    released = _released_in_spool(context.state_dir, known_owners)
    presences = _Presences(now.boot_id)
    states = {
        owner.id: judge_owner(owner, presences, now, context.settings.grace) for owner in released
    }
    return View(
        world=_world(context.state_dir, states, known_environments, known_records, outputs),
        records=tuple(known_records),
        claims=tuple(known_claims),
        kept=frozenset(kept),
        bad=(
            *bad_owners,
            *bad_environments,
            *bad_records,
            *bad_claims,
            *_bad_in_spool(context.state_dir),
        ),
        state_dir=context.state_dir,
        namespace=context.settings.namespace,
        extra_programs=context.settings.protect,
        now=time.time(),
        wide=wide,
    )


def _plainly_there(environment: Environment) -> bool:
    return os.path.isdir(environment.place.path)


def _released_in_spool(state_dir: str, known: Iterable[Owner]) -> tuple[Owner, ...]:
    """The owners with the releases that still wait in the spool applied."""
    if not os.path.isdir(statedir.spool_dir(state_dir)):
        return tuple(known)
    from corral.store import spool

    return spool.overlay(state_dir, tuple(known))


def _bad_in_spool(state_dir: str) -> list[BadRecord]:
    if not os.path.isdir(statedir.spool_dir(state_dir)):
        return []
    from corral.store import spool

    return spool.bad(state_dir)


def _world(
    state_dir: str,
    states: dict[str, OwnerState],
    known: Iterable[Environment],
    known_records: Iterable[Record],
    outputs: Mapping[str, Iterable[Output]],
) -> World:
    living = _living(states, known_records)
    pids = _recorded_pids(known_records)
    return World(
        owners=states,
        sessions={s: o for o, state in states.items() for s in state.owner.sessions},
        environments={
            e.id: EnvironmentState(
                e,
                *_existence(state_dir, e, outputs.get(e.id, ()), pids.get(e.id, ()), states),
                living.get(e.id, frozenset()),
            )
            for e in known
        },
    )


def _existence(
    state_dir: str,
    environment: Environment,
    outputs: Iterable[Output],
    pids: Iterable[int],
    states: Mapping[str, OwnerState],
) -> tuple[Existence, str]:
    anchored = any(environment.id in state.environments for state in states.values())
    found = traces(state_dir, environment, outputs, pids)
    return judge_environment(found, live_anchored=anchored)


def judged_environment(
    context: Context, state: EnvironmentState, states: Mapping[str, OwnerState]
) -> EnvironmentState:
    """The same environment, looked at and judged anew."""
    environment = state.environment
    with context.registry.read() as conn:
        outputs = environments.outputs(conn, environment.id)
        rows = records.of_environment(conn, environment.id)
    pids = _recorded_pids(rows).get(environment.id, [])
    found = _existence(context.state_dir, environment, outputs, pids, states)
    return EnvironmentState(environment, *found, state.living)


def _living(
    states: Mapping[str, OwnerState], known_records: Iterable[Record]
) -> dict[str, frozenset[str]]:
    """For every environment the owners that live in it."""
    found: dict[str, set[str]] = {}
    for owner_id, state in states.items():
        for environment in state.environments:
            found.setdefault(environment, set()).add(owner_id)
    boot_id = boot_clock().boot_id
    for record in known_records:
        if record.environment is None or record.state is not RecordState.LIVE:
            continue
        state_ = states.get(record.owner)
        if state_ is not None and state_.life.value != "over" and _lives(record, boot_id):
            found.setdefault(record.environment, set()).add(record.owner)
    return {environment: frozenset(ids) for environment, ids in found.items()}


def _lives(record: Record, boot_id: str) -> bool:
    """Whether a recorded resource is not proven gone; only processes can be asked cheaply."""
    if record.kind is not Kind.PROCESS:
        return True
    pinned = identity.decode_identity(record.identity)
    return identity.presence(pinned, boot_id=boot_id)[0].value != "gone"


def _recorded_pids(known_records: Iterable[Record]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for record in known_records:
        if record.kind is Kind.PROCESS and record.environment and record.identity:
            pid = dict(record.identity).get("pid")
            if isinstance(pid, int):
                found.setdefault(record.environment, []).append(pid)
    return found


def note_ends(context: Context) -> None:
    """Record the first sight of every epoch that is seen to be over, so that its grace runs."""
    now = boot_clock()
    presences = _Presences(now.boot_id)
    with context.registry.read() as conn:
        known, _ = owners.all_(conn)
    if not any(newly_ended(owner, presences, now) for owner in known):
        return
    try:
        with context.registry.write() as conn:
            _write_ends(conn, presences, now)
    except (HeldError, RegistryError):
        # A full disk or a busy gate: the grace begins later, and what is to be done is done.
        return


def _write_ends(conn: Connection, presences: _Presences, now: BootClock) -> None:
    known, _ = owners.all_(conn)
    end = End(now.boottime, now.suspended, now.boot_id)
    for owner in known:
        for epoch in newly_ended(owner, presences, now):
            owners.note_end(conn, epoch.id, end)
