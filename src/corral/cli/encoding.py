"""Values of the model as the documented JSON: one function for each shape."""

from __future__ import annotations

from corral.cli.output import Problem
from corral.decide.gone import MAYBE_MOVED
from corral.model.resource import BackendState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from corral.contracts import View
    from corral.model.record import BadRecord, Event
    from corral.model.report import Plan, Report
    from corral.model.resource import BackendReport, Judgement


def resource(judgement: Judgement) -> dict[str, Any]:
    """A resource: the twelve fields of the contract."""
    sighting = judgement.sighting
    return {
        "kind": sighting.kind.value,
        "id": sighting.id,
        "name": sighting.name,
        "backend": sighting.backend,
        "owner": judgement.owner,
        "session": judgement.session,
        "environment": judgement.environment,
        "state": sighting.state,
        "verdict": judgement.verdict.value,
        "reason": judgement.reason,
        "created_at": sighting.created_at,
        "identity": dict(sighting.identity),
    }


def resources(judgements: Iterable[Judgement]) -> list[dict[str, Any]]:
    """A list of resources."""
    return [resource(j) for j in judgements]


def bad_record(bad: BadRecord) -> dict[str, Any]:
    """A record that could not be understood, in the shape of a resource."""
    return {
        "kind": "record",
        "id": bad.id,
        "name": bad.where,
        "backend": "registry",
        "owner": None,
        "session": None,
        "environment": None,
        "state": "unreadable",
        "verdict": "UNKNOWN",
        "reason": bad.reason,
        "created_at": None,
        "identity": {},
    }


def backend(report: BackendReport) -> dict[str, Any]:
    """How one backend's look went."""
    return {"name": report.name, "state": report.state.value, "detail": report.detail}


def report_data(report: Report) -> dict[str, Any]:
    """What a teardown did."""
    return {
        "removed": resources(report.removed),
        "already_gone": resources(report.already_gone),
        "remaining": resources(report.remaining),
        "left": resources(report.left),
    }


def plan_data(plan: Plan, left: Iterable[Judgement]) -> dict[str, Any]:
    """What a teardown would do: nothing was removed, `remaining` is what would be."""
    return {
        "removed": [],
        "already_gone": [],
        "remaining": [],
        "left": resources(left),
        "would_remove": resources(plan.targets),
    }


def event(line: Event) -> dict[str, Any]:
    """One line of the journal."""
    return line._asdict()


def look_problems(backends: Iterable[BackendReport]) -> tuple[Problem, ...]:
    """One problem for each backend that could not look."""
    return tuple(
        Problem(
            "enumeration-failed",
            f"{report.name}: could not look: {report.detail}",
            report.name,
            "nothing of it was judged or removed; see: corral doctor",
        )
        for report in backends
        if report.state is BackendState.FAILED
    )


def missing_problems(view: View) -> tuple[Problem, ...]:
    """One problem for each worktree that is not there, while git lists it and something is left."""
    with_records = {record.environment for record in view.records}
    return tuple(
        Problem(
            "missing-directory",
            f"{state.environment.place.path} is not there, but git still lists that worktree: "
            "what runs of it is kept, for it may have been moved",
            identifier,
            "if it was deleted, run: git worktree prune, then corral cleanup; "
            "if it was moved: git worktree repair, and corral up there",
        )
        for identifier, state in view.world.environments.items()
        if state.reason == MAYBE_MOVED and identifier in with_records
    )


def written_problems(report: Report) -> tuple[Problem, ...]:
    """One problem where what was done could not be written down."""
    if not report.unwritten:
        return ()
    message = f"what was done could not be written down: {report.unwritten}"
    return (Problem("registry", message, None, "free some space; it is done all the same"),)


def remaining_problems(report: Report) -> tuple[Problem, ...]:
    """One problem for each thing that remains."""
    return tuple(
        Problem(
            "remaining",
            f"{j.sighting.kind.value} {j.sighting.name} ({j.sighting.id}) remains: {j.reason}",
            j.sighting.id,
            "run it again, or end it by hand",
        )
        for j in report.remaining
    )
