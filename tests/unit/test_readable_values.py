"""Plans and reports: what a person sees of one, and that two together lose nothing."""

from __future__ import annotations

from corral.model.report import Plan, Report
from corral.model.resource import BackendReport, BackendState, Judgement, Kind, Sighting, Verdict

_SIGHTING = Sighting(Kind.PROCESS, "7", "web", "process", "running", None, (("pid", 7),))
_REAP = Judgement(_SIGHTING, Verdict.REAP, "its owner asked", "owned")
_KEEP = Judgement(_SIGHTING, Verdict.KEEP, "its owner lives", "live")
_OK = BackendReport("process", BackendState.OK)
_FAILED = BackendReport("docker", BackendState.FAILED, "no answer")


def test_a_plan_says_how_much_would_go_and_where_nobody_could_look() -> None:
    assert repr(Plan((_REAP, _KEEP), (_OK,))) == "Plan(1 to remove, 1 to leave)"
    failed = Plan((), (_OK, _FAILED))
    assert repr(failed) == "Plan(0 to remove, 0 to leave; could not look: docker)"


def test_a_report_says_what_became_of_how_much() -> None:
    words = "1 removed, 0 already_gone, 2 remaining, 0 left"
    report = Report(removed=(_REAP,), remaining=(_REAP, _REAP), backends=(_FAILED,))
    assert repr(report) == f"Report({words}; could not look: docker)"


def test_two_reports_together_lose_nothing_of_either() -> None:
    one = Report((_REAP,), (), (_KEEP,), (), (_FAILED,), ("rec-1",), "the disk is full")
    other = Report((), (_REAP,), (), (_KEEP,), (_OK,), ("rec-2",))
    both = Report((_REAP,), (_REAP,), (_KEEP,), (_KEEP,), (_FAILED, _OK), ("rec-1", "rec-2"))
    assert one.merged(other) == both._replace(unwritten="the disk is full")
    assert Report().merged(one) == one
