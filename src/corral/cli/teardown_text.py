"""Plans and reports of teardowns in words."""

from __future__ import annotations

import time

from corral.cli.table import rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.report import Plan, Report


_GRACE = "grace"
_NOT_YET = "not yet: its worker may return until the grace is over"


def plan_text(plan: Plan) -> str:
    """What would be removed, with age, owner and reason; and what only a grace holds back."""
    now = time.time()
    waiting = [j for j in plan.judgements if j.code == _GRACE]
    text = rows("would remove", plan.targets, now) or "nothing to remove\n"
    return text + rows(_NOT_YET, waiting, now)


def report_text(report: Report) -> str:
    """What was removed, what had gone, what remains and what was left."""
    now = time.time()
    text = "".join(
        rows(title, group, now)
        for title, group in (
            ("removed", report.removed),
            ("already gone", report.already_gone),
            ("remaining", report.remaining),
            ("left", [j for j in report.left if j.code not in {"environment", _GRACE}]),
            (_NOT_YET, [j for j in report.left if j.code == _GRACE]),
        )
    )
    if any(report[:3]):
        return text
    return f"nothing to remove\n{text}"
