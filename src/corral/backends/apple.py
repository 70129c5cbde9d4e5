"""Containers and networks of Apple's `container`, which has a command line and no API."""

from __future__ import annotations

import time

from corral.backends import _command
from corral.backends.apple_listing import things
from corral.backends.creating import being_created
from corral.backends.engine.changing import already_gone, deadline, each
from corral.backends.engine.labels import read_labels
from corral.errors import EnumerationError, InvalidValueError
from corral.kernel.creators import at_work
from corral.model.record import RecordState
from corral.model.report import Outcome
from corral.model.resource import BackendState, Kind, Mark, Observation, Proof, Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corral.backends.apple_listing import Thing
    from corral.contracts import RemovalContext, View
    from corral.model.record import Record
    from corral.model.resource import Judgement

NAME = "apple"
PROGRAM = "container"
KINDS = frozenset({Kind.CONTAINER, Kind.NETWORK})
LOOK_SECONDS = 4.5
_CALL_SECONDS = 30.0
_PATIENCE = 5.0
_PAUSE = 0.2
_RUNNING = "running"
_LISTING = {
    Kind.CONTAINER: (PROGRAM, "list", "--all", "--format", "json"),
    Kind.NETWORK: (PROGRAM, "network", "list", "--format", "json"),
}
_DELETING = {
    Kind.CONTAINER: ("delete", "--force"),
    Kind.NETWORK: ("network", "delete"),
}
Pairs = tuple[tuple[str, str | int], ...]


class _ServiceDownError(EnumerationError):
    """The program is here, and its service says that it does not run."""


class AppleBackend:
    """The containers and networks of the service that the program `container` speaks to."""

    name = NAME
    kinds = KINDS

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def observe(self, view: View) -> Observation:
        """Everything that carries a label of corral's or is recorded."""
        recorded = [r for r in view.records if r.backend == NAME]
        try:
            found = self._look()
        except _ServiceDownError as error:
            if recorded:
                reason = f"{error.message}, and something recorded is there"
                raise EnumerationError(reason, backend=NAME, remedy=error.remedy) from error
            return Observation(NAME, BackendState.ABSENT, error.message)
        look = _Look(view, recorded)
        seen = [look.sight(kind, thing) for kind, each_ in found.items() for thing in each_]
        marked = tuple(s for s in seen if s.marks and not s.protections)
        gone, creating = look.accounts(marked, found)
        containers = len(found[Kind.CONTAINER])
        detail = f"{containers} containers, {len(found[Kind.NETWORK])} networks"
        return Observation(NAME, BackendState.OK, detail, (*marked, *creating), gone)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """The container or network of exactly that id, marked or not."""
        try:
            found = self._look()
        except _ServiceDownError:
            return None
        look = _Look(view, [r for r in view.records if r.backend == NAME])
        things_ = (look.sight(kind, t) for t in found.get(kind, ()) if t.id == identifier)
        return next(things_, None)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Delete by id what is still exactly what was judged; done is what is listed no more."""
        kind = targets[0].sighting.kind
        present = {thing.id: thing for thing in self._listed(kind)}

        def act(target: Judgement) -> Outcome:
            thing = present.get(target.sighting.id)
            if thing is None:
                return already_gone(target)
            if _identity(thing) != target.sighting.identity:
                return Outcome(target.sighting, "left", "another one has its id now")
            if thing.mounts and thing.state == _RUNNING:
                # Whether it stopped is not what the program says: deleting by force settles it.
                self._call("stop", "--time", str(int(context.gentle)), thing.id)
                doubt = context.confirm(target)
                if doubt:
                    return Outcome(target.sighting, "left", doubt)
            return self._verified(target, self._call(*_DELETING[kind], thing.id), context)

        return tuple(each(targets, context, act))

    def _verified(self, target: Judgement, words: str, context: RemovalContext) -> Outcome:
        until = deadline(context, _PATIENCE)
        sighting = target.sighting
        while True:
            try:
                there = {thing.id: thing for thing in self._listed(sighting.kind)}
            except EnumerationError as error:
                reason = f"{words}; its end could not be verified: {error.message}".lstrip("; ")
                return Outcome(sighting, "remaining", reason)
            thing = there.get(sighting.id)
            if thing is None or _identity(thing) != sighting.identity:
                return Outcome(sighting, "removed", "removed")
            if words or time.monotonic() >= until:
                reason = words or f"{PROGRAM} deleted it without complaint"
                return Outcome(sighting, "remaining", f"{reason}, and it is still there")
            time.sleep(_PAUSE)

    def _call(self, *words: str) -> str:
        """Let the program do something; its complaint, "" for none."""
        try:
            done = _command.run((PROGRAM, *words), timeout=_CALL_SECONDS, env=self._environ)
        except (EnumerationError, _command.ProgramMissingError) as error:
            # It hung or was taken away: what is left will be seen.
            return error.message
        return "" if done.returncode == 0 else f"{PROGRAM} {words[0]}: {_complaint(done)}"

    def _look(self) -> dict[Kind, tuple[Thing, ...]]:
        return {kind: self._listed(kind) for kind in _LISTING}

    def _listed(self, kind: Kind) -> tuple[Thing, ...]:
        command = _LISTING[kind]
        done = self._run(command)
        what = " ".join(command)
        if done.returncode:
            self._raise_if_down()
            raise EnumerationError(f"{what}: {_complaint(done)}", backend=NAME)
        try:
            return things(done.stdout)
        except InvalidValueError as error:
            words = f"{what} printed what is not understood: {error.message}"
            raise EnumerationError(words, backend=NAME) from error

    def _raise_if_down(self) -> None:
        status = self._run((PROGRAM, "system", "status"))
        if status.returncode == 1:
            raise _ServiceDownError(
                f"{PROGRAM} system status: {_complaint(status)}",
                backend=NAME,
                remedy=f"start it: {PROGRAM} system start",
            )

    def _run(self, command: Sequence[str]) -> _command.Completed:
        try:
            return _command.run(command, timeout=LOOK_SECONDS, env=self._environ)
        except _command.ProgramMissingError as error:
            raise EnumerationError(error.message, backend=NAME, remedy=error.remedy) from error


class _Look:
    """What the registry knows, for one look."""

    def __init__(self, view: View, recorded: Sequence[Record]) -> None:
        spaces = (e.environment.namespace for e in view.world.environments.values())
        self._spaces = tuple(dict.fromkeys([view.namespace, *spaces]))
        self._view = view
        self._recorded = recorded
        self._live = {
            (r.kind, r.identity): r for r in recorded if r.state is not RecordState.INTENT
        }

    def sight(self, kind: Kind, thing: Thing) -> Sighting:
        """What is seen of one thing, marked or not."""
        identity = _identity(thing)
        record = self._live.get((kind, identity))
        labels = read_labels(thing.labels, self._spaces, {})
        marks = []
        environments = self._view.world.environments
        if record is not None:
            where = record.environment if record.environment in environments else None
            marks.append(Mark(Proof.RECORDED, record.owner, None, where))
        if labels.owner or labels.session:
            where = labels.environment if labels.environment in environments else None
            marks.append(Mark(Proof.LABEL, labels.owner, labels.session, where))
        elif labels.environment and record is None:
            marks.append(Mark(Proof.LABEL, environment=labels.environment))
        own = kind is Kind.NETWORK and thing.built_in
        return Sighting(
            kind=kind,
            id=thing.id,
            name=thing.id,
            backend=NAME,
            state=thing.state,
            created_at=thing.created,
            identity=identity,
            marks=tuple(marks),
            protections=("every machine has it by itself",) if own else (),
            kept=labels.keep,
            record=record.id if record is not None else None,
        )

    def accounts(
        self, marked: Sequence[Sighting], found: Mapping[Kind, tuple[Thing, ...]]
    ) -> tuple[tuple[str, ...], tuple[Sighting, ...]]:
        """The ids of records that name nothing any more, and what is being created."""
        there = {(kind, _identity(thing)) for kind, each_ in found.items() for thing in each_}
        owners = {mark.owner for sighting in marked for mark in sighting.marks}
        gone, creating = [], []
        for record in self._recorded:
            if record.state is not RecordState.INTENT:
                if (record.kind, record.identity) not in there:
                    gone.append(record.id)
            elif record.owner not in owners:
                if at_work(record):
                    creating.append(being_created(record, NAME))
                else:
                    gone.append(record.id)
        return tuple(gone), tuple(creating)


def _identity(thing: Thing) -> Pairs:
    return (("id", thing.id), ("created", thing.stamp))


def _complaint(done: _command.Completed) -> str:
    return done.last_line or f"exit {done.returncode}"
