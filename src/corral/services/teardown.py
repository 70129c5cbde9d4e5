"""The one removal protocol: lock, look, judge, remove, look again, report.

`prepare` only looks. `carry_out` acts, under the lifecycle lock, on what a fresh look still finds
to be removable and, for a cleanup, on nothing that was not shown before.
"""

from __future__ import annotations

import time

from corral.contracts import RemovalContext
from corral.decide.approval import approved
from corral.decide.order import ORDER, stages
from corral.errors import EnumerationError, HeldError, RegistryError
from corral.model.report import Outcome, Plan, Report
from corral.model.resource import BackendReport, BackendState, Kind, Verdict
from corral.model.tuples import NamedTuple
from corral.services import lifecycle
from corral.services.confirming import Confirmation
from corral.services.looking import Looked, judge_all, observe_all
from corral.services.protecting import protecting
from corral.services.recording import write_down
from corral.services.view import look, note_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import Backend, View
    from corral.decide.judge import Request
    from corral.model.resource import Judgement
    from corral.services.context import Context

MOST_ROUNDS = 10
DEADLINE = 60.0


class Teardown(NamedTuple):
    """What to tear down, and how: the request, the trigger's word for the journal, the limits.

    `adjust` may complete the view (an owner known only by its session id). `lock_seconds` None
    waits for the lifecycle lock as long as it takes.
    """

    request: Request
    trigger: str
    wide: bool = False
    adjust: Callable[[View], View] | None = None
    lock_seconds: float | None = lifecycle.DEFAULT_TIMEOUT
    seconds: float = DEADLINE


def _look(context: Context, job: Teardown) -> View:
    view = look(context, wide=job.wide)
    return job.adjust(view) if job.adjust is not None else view


def prepare(context: Context, backends: Sequence[Backend], job: Teardown) -> Plan:
    """What would be removed now, with identities and reasons. Changes nothing."""
    view = _look(protecting(context), job)
    looked = observe_all(backends, view)
    return Plan(judge_all(looked.observations, view, job.request), looked.reports, view.bad)


def carry_out(
    context: Context,
    backends: Sequence[Backend],
    job: Teardown,
    *,
    shown: Plan | None = None,
) -> Report:
    """Remove what the request covers; with `shown`, only what was shown there as well.

    Raises HeldError when the lifecycle lock cannot be had in time. What one backend cannot look
    at stops that backend only, and the report says so.
    """
    note_ends(context)
    with lifecycle.hold(context.state_dir, what=job.trigger, timeout=job.lock_seconds):
        return carry_out_locked(context, backends, job, shown=shown)


def carry_out_locked(
    context: Context, backends: Sequence[Backend], job: Teardown, *, shown: Plan | None = None
) -> Report:
    """The same for a caller that holds the lifecycle lock."""
    run = _Run(protecting(context), backends, job, shown)
    run.remove()
    report = run.report()
    try:
        write_down(context, report, job, run.view)
    except (HeldError, RegistryError) as error:
        # It is done all the same; the next teardown drops the records.
        return report._replace(unwritten=error.message)
    return report


class _Run:
    """The state of one teardown: what was tried, with which outcome, and who could not look."""

    def __init__(
        self, context: Context, backends: Sequence[Backend], job: Teardown, shown: Plan | None
    ) -> None:
        self.context = context
        self.job = job
        self.shown = [t.sighting for t in shown.targets] if shown is not None else None
        self.by_name = {b.name: b for b in backends}
        self.deadline = time.monotonic() + job.seconds
        self.tried: dict[object, tuple[Judgement, Outcome]] = {}
        self.failures: dict[str, BackendReport] = {}
        self.view = _look(context, job)
        self.first = self.fresh = self._observe(tuple(backends))
        self.reports = self.fresh.reports

    def _observe(self, backends: Sequence[Backend]) -> Looked:
        looked = observe_all(backends, self.view)
        for report in looked.reports:
            if report.state is BackendState.FAILED:
                self.failures[report.name] = report
        return looked

    def judgements(self, looked: Looked) -> tuple[Judgement, ...]:
        return judge_all(looked.observations, self.view, self.job.request)

    def targets(self) -> tuple[Judgement, ...]:
        """What the last look leaves to be removed, approved where approval is needed."""
        fresh = self.judgements(self.fresh)
        allowed = fresh if self.shown is None else approved(fresh, self.shown)
        return tuple(j for j in allowed if j.verdict is Verdict.REAP)

    def remove(self) -> None:
        """Rounds of removing and looking again, for what a tree spawns while it is ended."""
        for _ in range(MOST_ROUNDS):
            targets = [t for t in self.targets() if self._worth_trying(t)]
            if not targets:
                return
            for _, stage in stages(targets):
                self._remove_stage(stage)
            if self.shown is not None:
                self.shown += [t.sighting for t in targets]
            self._look_again({t.sighting.backend for t in targets} | self._beside(targets))
            if time.monotonic() > self.deadline:
                return

    def _beside(self, targets: Sequence[Judgement]) -> set[str]:
        """Who else must look again: the supervisor of a microVM may go once that has ended."""
        if not any(t.sighting.kind is Kind.MICROVM for t in targets):
            return set()
        return {name for name, b in self.by_name.items() if Kind.PROCESS in b.kinds}

    def _worth_trying(self, target: Judgement) -> bool:
        if target.sighting.backend in self.failures:
            return False
        return target.sighting.key not in self.tried

    def _remove_stage(self, stage: tuple[Judgement, ...]) -> None:
        for name in dict.fromkeys(t.sighting.backend for t in stage):
            backend = self.by_name[name]
            mine = [t for t in stage if t.sighting.backend == name]
            confirm = Confirmation(self.context, self.view, self.job.request)
            removal = RemovalContext(self.view, confirm, self.deadline)
            try:
                outcomes = backend.remove(mine, removal)
            except EnumerationError as error:
                self.failures[name] = BackendReport(name, BackendState.FAILED, error.message)
                outcomes = tuple(Outcome(t.sighting, "remaining", error.message) for t in mine)
            by_key = {t.sighting.key: t for t in mine}
            for outcome in outcomes:
                target = by_key[outcome.sighting.key]
                self.tried[outcome.sighting.key] = (target, outcome)

    def _look_again(self, names: set[str]) -> None:
        self.view = _look(self.context, self.job)
        backends = [b for n, b in self.by_name.items() if n in names and n not in self.failures]
        again = self._observe(backends)
        seen = {o.backend for o in again.observations}
        others = tuple(o for o in self.fresh.observations if o.backend not in seen)
        self.fresh = Looked((*others, *again.observations), again.reports)

    def report(self) -> Report:
        """Sort by what the last look shows: removed is only what it no longer finds."""
        still = {s.key for o in self.fresh.observations for s in o.sightings}
        sorted_: dict[str, list[Judgement]] = {
            "removed": [],
            "already_gone": [],
            "remaining": [],
            "left": [],
        }
        for key, (target, outcome) in self.tried.items():
            result, reason = _verified(
                outcome, target.sighting.backend, self.failures, still_there=key in still
            )
            sorted_[result].append(target._replace(reason=reason or target.reason))
        for target in self.targets():
            if target.sighting.key not in self.tried:
                sorted_["remaining"].append(target._replace(reason=self._why_untried(target)))
        sorted_["left"] += self._left()
        for group in sorted_.values():
            group.sort(key=_age_first)
        reports = tuple(self.failures.get(r.name, r) for r in self.reports)
        return Report(
            tuple(sorted_["removed"]),
            tuple(sorted_["already_gone"]),
            tuple(sorted_["remaining"]),
            tuple(sorted_["left"]),
            reports,
            tuple(record for o in self.fresh.observations for record in o.gone),
        )

    def _why_untried(self, target: Judgement) -> str:
        failed = self.failures.get(target.sighting.backend)
        if failed is not None:
            return f"not tried: {failed.detail}"
        culprit = target.sighting.ancestors[0][0] if target.sighting.ancestors else None
        by = f" by process {culprit}" if culprit else ""
        return f"started again and again{by}, faster than it could be ended"

    def _left(self) -> list[Judgement]:
        return [
            j
            for j in self.judgements(self.fresh)
            if j.sighting.key not in self.tried
            and concerns(j, self.job.request, self.view)
            and (j.verdict is not Verdict.REAP or not self._covered(j))
        ]

    def _covered(self, judgement: Judgement) -> bool:
        return any(t.sighting.key == judgement.sighting.key for t in self.targets())


def _age_first(judgement: Judgement) -> tuple[int, float, str]:
    """By kind in the order of removal, the oldest first."""
    sighting = judgement.sighting
    return (ORDER.index(sighting.kind), sighting.created_at or 0.0, sighting.id)


def _verified(
    outcome: Outcome, backend: str, failures: dict[str, BackendReport], *, still_there: bool
) -> tuple[str, str]:
    """What an outcome is worth after the last look; "removed" needs that look."""
    if outcome.result in {"left", "remaining"}:
        return outcome.result, outcome.reason
    if backend in failures:
        return "remaining", f"could not be verified: {failures[backend].detail}"
    if still_there:
        return "remaining", "it is still there after its removal"
    return outcome.result, ""


def concerns(judgement: Judgement, request: Request, view: View) -> bool:
    """Whether a judgement belongs into the report of this request, though nothing was done."""
    trigger = request.trigger.value
    if trigger == "down":
        return judgement.environment == request.environment
    if trigger == "cleanup":
        if judgement.owner is not None and judgement.owner not in view.world.owners:
            return False  # another state directory's mark
        return judgement.verdict is not Verdict.KEEP or judgement.code in {"data", "age", "grace"}
    if judgement.owner is not None:
        return judgement.owner == request.owner
    if judgement.environment is None:
        return False
    state = view.world.owners.get(request.owner or "")
    return state is not None and (
        state.owner.implicit_of == judgement.environment
        or any(e.environment == judgement.environment for e in state.owner.epochs)
    )


def exit_status(report: Report | Plan) -> int:
    """0 done, 1 something remains, 3 a backend could not look (wins over 1)."""
    if any(r.state is BackendState.FAILED for r in report.backends):
        return 3
    return 1 if isinstance(report, Report) and report.remaining else 0
