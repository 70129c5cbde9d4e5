"""The kit: what every backend must do, as one suite over a bench.

A bench (`Bench`) knows how to make a thing of the backend's kind and how to let the place where it
lives fail. A test module makes a class on top of `BackendKit`, and of the mixins for what can fail
there, and gives the fixture `bench`.

The suite goes through the one removal protocol with a registry of its own, as the commands do.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest

from corral.contracts import RemovalContext
from corral.decide.judge import Request, Trigger
from corral.model.resource import BackendState, Kind
from corral.services import adopting, environments, owners
from corral.services.context import context_in
from corral.services.ending import Subject, cleanup_job, reap_job
from corral.services.looking import observe_all
from corral.services.teardown import Teardown, carry_out, exit_status, prepare
from corral.services.view import look
from corral.store import journal, records
from corral.store import owners as owner_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from corral.contracts import Backend
    from corral.model.report import Report
    from corral.model.resource import Judgement, Observation, Sighting
    from corral.services.context import Context

_SOON = 1.0  # seconds that a removal which never succeeds is tried


class Worker(NamedTuple):
    """A worker with a session in an environment of its own; `directory` is the environment's."""

    context: Context
    directory: Path
    owner: str
    session: str
    environment: str

    @property
    def environ(self) -> dict[str, str]:
        """Variables under which a command line acts for this worker."""
        return {**os.environ, "CORRAL_SESSION": self.session}

    def end(self) -> None:
        """End the worker, as the end of its session does."""
        with self.context.registry.write() as conn:
            owner_table.release(conn, self.owner, epoch_id=None, now=time.time(), why="test")


def worker_in(directory: Path, session: str) -> Worker:
    """A worker with this session id."""
    directory.mkdir(parents=True, exist_ok=True)
    context = context_in(str(directory), {**os.environ, "CORRAL_SESSION": session})
    environment = environments.register(context)
    acting = owners.ensure_acting(context, environment)
    return Worker(context, directory, acting.owner, session, environment.id)


class Bench:
    """How one backend's things are made and fail. Subclasses implement all that is not optional.

    A thing is named by whatever the bench likes; it is only handed back to the bench.
    """

    kind: Kind = Kind.CONTAINER

    def backend(self, worker: Worker) -> Backend:
        """The backend, as wiring would make it."""
        raise NotImplementedError

    def make(self, worker: Worker) -> Any:
        """A new thing that is exactly this worker's."""
        raise NotImplementedError

    def make_unmarked(self) -> Any:
        """A new thing that is nobody's as far as corral can tell."""
        raise NotImplementedError

    def make_look_alikes(self, worker: Worker) -> list[Any]:
        """Things whose marks are empty, or almost those of the worker, but not exactly."""
        raise NotImplementedError

    def exists(self, thing: Any) -> bool:
        """Whether the thing is still there, asked of the place itself."""
        raise NotImplementedError

    def is_it(self, sighting: Sighting, thing: Any) -> bool:
        """Whether a sighting is of this thing."""
        return thing in {sighting.id, sighting.name}

    def replace(self, thing: Any, worker: Worker) -> Any:
        """Another thing of the same name or id, in the place of the first, as much the worker's."""
        raise NotImplementedError

    def take_away(self, thing: Any) -> None:
        """Remove the thing behind corral's back."""
        raise NotImplementedError

    def break_look(self, fault: str) -> None:
        """Let looks fail in this way; "" mends it."""
        raise NotImplementedError

    def break_removal(self, fault: str) -> None:
        """Let removals fail in this way; "" mends it."""
        raise NotImplementedError

    def job(self, worker: Worker) -> Teardown:
        """The teardown that takes the worker's things."""
        return reap_job(Subject(worker.owner, worker.session, known=True))

    def abandon(self, worker: Worker) -> None:
        """Let the worker's things become orphans."""
        worker.end()


class BackendKit:
    """What every backend must do, whatever can fail in it."""

    look_faults: ClassVar[tuple[str, ...]] = ()
    removal_faults: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Each test of a fault runs once for every fault that the backend can have."""
        for name in ("look_fault", "removal_fault"):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, getattr(metafunc.cls, f"{name}s"))

    @pytest.fixture
    def worker(self, private_root: Path, bench: Bench) -> Worker:
        del bench  # what it puts on PATH and into variables comes first
        return worker_in(private_root / "kit", "kit-1")

    def test_what_is_the_workers_is_seen_with_its_proof(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        (judgement,) = _about(bench, worker, thing)
        assert judgement.verdict.value == "REAP"
        assert judgement.proof is not None
        assert judgement.sighting.identity
        assert judgement.sighting.kind is bench.kind

    def test_what_is_the_workers_is_removed_and_written_down(
        self, bench: Bench, worker: Worker
    ) -> None:
        thing = bench.make(worker)
        report = _reap(bench, worker)
        assert _in(report.removed, bench, thing)
        assert report.remaining == ()
        assert exit_status(report) == 0
        assert not bench.exists(thing)
        with worker.context.registry.read() as conn:
            events = journal.since(conn, 0.0, 100)
        assert any(e.action == "removed" and e.kind == bench.kind.value for e in events)

    def test_a_second_removal_finds_nothing_to_do(self, bench: Bench, worker: Worker) -> None:
        bench.make(worker)
        _reap(bench, worker)
        report = _reap(bench, worker)
        assert not [j for j in report.removed if j.sighting.kind is bench.kind]
        assert report.remaining == ()
        assert exit_status(report) == 0

    def test_nothing_but_the_workers_is_touched(self, bench: Bench, worker: Worker) -> None:
        others = [bench.make_unmarked(), *bench.make_look_alikes(worker)]
        mine = bench.make(worker)
        _reap(bench, worker)
        bench.abandon(worker)
        _cleanup(bench, worker)
        assert not bench.exists(mine)
        assert [thing for thing in others if not bench.exists(thing)] == []

    def test_a_strangers_unmarked_thing_is_never_offered(
        self, bench: Bench, worker: Worker
    ) -> None:
        stranger = bench.make_unmarked()
        bench.abandon(worker)
        plan = prepare(worker.context, [bench.backend(worker)], _cleanup_job())
        assert not _in(plan.targets, bench, stranger)

    def test_an_orphan_is_cleaned_up(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        plan = _plan(bench, worker)
        assert not _in(plan.targets, bench, thing), "its owner lives"
        bench.abandon(worker)
        report = _cleanup(bench, worker)
        assert _in(report.removed, bench, thing)
        assert not bench.exists(thing)

    def test_what_appeared_after_the_preview_is_left(self, bench: Bench, worker: Worker) -> None:
        first = bench.make(worker)
        plan = prepare(worker.context, [bench.backend(worker)], bench.job(worker))
        second = bench.make(worker)
        if second == first:
            return  # there can be only one
        report = carry_out(worker.context, [bench.backend(worker)], bench.job(worker), shown=plan)
        assert not bench.exists(first)
        assert bench.exists(second)
        assert not _in(report.removed, bench, second)

    def test_what_went_after_the_preview_is_no_error(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        plan = prepare(worker.context, [bench.backend(worker)], bench.job(worker))
        bench.take_away(thing)
        report = carry_out(worker.context, [bench.backend(worker)], bench.job(worker), shown=plan)
        assert report.remaining == ()
        assert exit_status(report) == 0

    def test_what_goes_right_before_its_removal_is_already_gone(
        self, bench: Bench, worker: Worker
    ) -> None:
        thing = bench.make(worker)
        targets = _about(bench, worker, thing)
        bench.take_away(thing)
        outcomes = bench.backend(worker).remove(targets, _removal(worker))
        assert {o.result for o in outcomes} <= {"already_gone", "removed"}

    def test_whoever_says_no_at_the_last_moment_is_heard(
        self, bench: Bench, worker: Worker
    ) -> None:
        thing = bench.make(worker)
        targets = _about(bench, worker, thing)
        removal = _removal(worker, lambda _: "its owner came back")
        (outcome,) = bench.backend(worker).remove(targets, removal)
        assert (outcome.result, outcome.reason) == ("left", "its owner came back")
        assert bench.exists(thing)

    def test_what_is_kept_on_request_is_left(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        (judgement,) = _about(bench, worker, thing)
        adopting.keep(worker.context, judgement.sighting, kept=True)
        report = _reap(bench, worker)
        assert bench.exists(thing)
        assert not _in(report.removed, bench, thing)
        adopting.keep(worker.context, judgement.sighting, kept=False)
        _reap(bench, worker)
        assert not bench.exists(thing)

    def test_another_workers_thing_is_left(
        self, bench: Bench, worker: Worker, private_root: Path
    ) -> None:
        other = worker_in(private_root / "other", "kit-1-2")
        theirs, mine = bench.make(other), bench.make(worker)
        _reap(bench, worker)
        assert bench.exists(theirs)
        assert not bench.exists(mine)
        _reap(bench, other)

    def test_it_is_found_by_its_exact_name_only(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        (judgement,) = _about(bench, worker, thing)
        backend, view = bench.backend(worker), look(worker.context)
        wanted = judgement.sighting.id
        found = backend.look_up(view, bench.kind, wanted)
        assert found is not None
        assert found.id == wanted
        assert backend.look_up(view, bench.kind, f"{wanted}x") is None
        assert backend.look_up(view, bench.kind, "") is None

    def test_a_look_changes_nothing(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        before = _content(worker)
        _plan(bench, worker)
        prepare(worker.context, [bench.backend(worker)], bench.job(worker))
        assert _content(worker) == before
        assert bench.exists(thing)

    def test_two_looks_name_the_same_thing_alike(self, bench: Bench, worker: Worker) -> None:
        thing = bench.make(worker)
        keys = {_about(bench, worker, thing)[0].sighting.key for _ in range(2)}
        assert len(keys) == 1


class ReplacedThings(BackendKit):
    """For backends whose things can be replaced by another of the same name or id."""

    def test_what_was_replaced_after_the_preview_is_left(
        self, bench: Bench, worker: Worker
    ) -> None:
        thing = bench.make(worker)
        plan = prepare(worker.context, [bench.backend(worker)], bench.job(worker))
        new = bench.replace(thing, worker)
        carry_out(worker.context, [bench.backend(worker)], bench.job(worker), shown=plan)
        assert bench.exists(new)

    def test_what_is_replaced_right_before_its_removal_is_left(
        self, bench: Bench, worker: Worker
    ) -> None:
        thing = bench.make(worker)
        targets = _about(bench, worker, thing)
        new = bench.replace(thing, worker)
        outcomes = bench.backend(worker).remove(targets, _removal(worker))
        assert bench.exists(new)
        assert not [o for o in outcomes if o.result == "removed"]


class FailingLooks(BackendKit):
    """For backends whose looks can fail: fail, hang, garble, or show nothing (empty)."""

    def test_a_look_that_fails_is_not_an_empty_look(
        self, bench: Bench, worker: Worker, look_fault: str
    ) -> None:
        thing = bench.make(worker)
        bench.break_look(look_fault)
        looked = observe_all(
            [bench.backend(worker)], look(worker.context), seconds=_seconds(look_fault)
        )
        (report,) = looked.reports
        if look_fault.endswith("empty"):  # it lies: nobody can tell, but nothing may be removed
            assert report.state is not BackendState.ABSENT
        else:
            assert report.state is BackendState.FAILED
            assert report.detail
        bench.break_look("")
        assert bench.exists(thing)

    def test_while_it_cannot_look_it_removes_nothing_and_the_others_go_on(
        self, bench: Bench, worker: Worker, look_fault: str
    ) -> None:
        if look_fault.endswith("hang"):
            return  # five seconds of waiting show nothing more than the test above
        thing = bench.make(worker)
        bench.break_look(look_fault)
        other = _Working()
        report = carry_out(worker.context, [bench.backend(worker), other], bench.job(worker))
        bench.break_look("")
        assert bench.exists(thing)
        assert not _in(report.removed, bench, thing)
        assert other.looked
        if not look_fault.endswith("empty"):
            assert exit_status(report) == 3
        assert bench.exists(thing)

    def test_what_is_recorded_survives_a_failed_look(
        self, bench: Bench, worker: Worker, look_fault: str
    ) -> None:
        if look_fault.endswith(("hang", "empty")):
            return
        thing = bench.make(worker)
        before = _recorded(worker)
        bench.break_look(look_fault)
        carry_out(worker.context, [bench.backend(worker)], bench.job(worker))
        bench.break_look("")
        assert _recorded(worker) == before
        report = _reap(bench, worker)
        assert _in(report.removed, bench, thing)

    def test_a_look_that_fails_after_the_preview_aborts_this_backend(
        self, bench: Bench, worker: Worker, look_fault: str
    ) -> None:
        if look_fault.endswith("hang"):
            return
        thing = bench.make(worker)
        plan = prepare(worker.context, [bench.backend(worker)], bench.job(worker))
        bench.break_look(look_fault)
        report = carry_out(worker.context, [bench.backend(worker)], bench.job(worker), shown=plan)
        bench.break_look("")
        assert bench.exists(thing)
        assert not _in(report.removed, bench, thing)


class FailingRemovals(BackendKit):
    """For backends whose removals can fail: fail, lie, hang, or take their time (slow)."""

    def test_what_could_not_be_removed_remains_and_is_finished_later(
        self, bench: Bench, worker: Worker, removal_fault: str
    ) -> None:
        thing = bench.make(worker)
        bench.break_removal(removal_fault)
        report = _reap(bench, worker, seconds=_SOON)
        if removal_fault == "slow":
            bench.break_removal("")
            _reap(bench, worker)
            assert not bench.exists(thing)
            return
        assert not _in(report.removed, bench, thing)
        (remaining,) = [j for j in report.remaining if bench.is_it(j.sighting, thing)]
        assert remaining.reason
        assert exit_status(report) == 1
        bench.break_removal("")
        assert bench.exists(thing)
        assert _in(_reap(bench, worker).removed, bench, thing)
        assert not bench.exists(thing)

    def test_a_slow_removal_is_waited_for(
        self, bench: Bench, worker: Worker, removal_fault: str
    ) -> None:
        if removal_fault != "slow":
            return
        thing = bench.make(worker)
        bench.break_removal("slow")
        report = _reap(bench, worker)
        bench.break_removal("")
        assert _in(report.removed, bench, thing)
        assert not bench.exists(thing)


class _Working:
    """A backend that has nothing, beside the one that fails."""

    name = "beside"
    kinds = frozenset({Kind.VOLUME})
    local = True

    def __init__(self) -> None:
        self.looked = False

    def observe(self, view: object) -> Observation:
        from corral.model.resource import Observation

        del view
        self.looked = True
        return Observation(self.name, BackendState.OK, "")

    def look_up(self, view: object, kind: Kind, identifier: str) -> None:
        del view, kind, identifier

    def remove(self, targets: object, context: object) -> tuple[()]:
        del targets, context
        return ()


def _seconds(fault: str) -> float:
    return 0.5 if fault.endswith("hang") else 5.0


def _cleanup_job() -> Teardown:
    return cleanup_job(now=time.time(), data=True)


def _plan(bench: Bench, worker: Worker) -> Any:
    return prepare(worker.context, [bench.backend(worker)], _cleanup_job())


def _reap(bench: Bench, worker: Worker, *, seconds: float = 60.0) -> Report:
    job = bench.job(worker)._replace(seconds=seconds)
    return carry_out(worker.context, [bench.backend(worker)], job)


def _cleanup(bench: Bench, worker: Worker) -> Report:
    plan = _plan(bench, worker)
    return carry_out(worker.context, [bench.backend(worker)], _cleanup_job(), shown=plan)


def _about(bench: Bench, worker: Worker, thing: Any) -> list[Judgement]:
    plan = prepare(worker.context, [bench.backend(worker)], bench.job(worker))
    return [j for j in plan.judgements if bench.is_it(j.sighting, thing)]


def _in(judgements: Sequence[Judgement], bench: Bench, thing: Any) -> bool:
    return any(bench.is_it(j.sighting, thing) for j in judgements)


def _removal(worker: Worker, confirm: Callable[[Judgement], str] = lambda _: "") -> RemovalContext:
    return RemovalContext(look(worker.context), confirm, time.monotonic() + 30.0)


def _recorded(worker: Worker) -> set[str]:
    with worker.context.registry.read() as conn:
        return {record.id for record in records.all_(conn)[0]}


def _content(worker: Worker) -> list[str]:
    with worker.context.registry.read() as conn:
        return list(conn.iterdump())


def down_job(worker: Worker) -> Teardown:
    """The teardown of the worker's whole environment, for what an environment owns."""
    request = Request(
        Trigger.DOWN, owner=worker.owner, environment=worker.environment, data=True, force=True
    )
    return Teardown(request, "down")


__all__ = [
    "BackendKit",
    "Bench",
    "FailingLooks",
    "FailingRemovals",
    "ReplacedThings",
    "Worker",
    "down_job",
    "worker_in",
]
