"""What teardown plans and reports."""

from __future__ import annotations

from corral.model.record import BadRecord
from corral.model.resource import BackendReport, BackendState, Judgement, Sighting
from corral.model.tuples import NamedTuple


def failed_looks(backends: tuple[BackendReport, ...]) -> str:
    """`; could not look: docker`, or "" where every look went well."""
    failed = [report.name for report in backends if report.state is BackendState.FAILED]
    return f"; could not look: {', '.join(failed)}" if failed else ""


class Outcome(NamedTuple):
    """What became of one resource: `result` is removed, already_gone, remaining or left."""

    sighting: Sighting
    result: str
    reason: str


class Plan(NamedTuple):
    """What a cleanup would remove, with identities and reasons; looking changed nothing.

    `judgements`: all that was judged; `backends`: how each look went.
    """

    judgements: tuple[Judgement, ...]
    backends: tuple[BackendReport, ...]
    unknown: tuple[BadRecord, ...] = ()

    @property
    def targets(self) -> tuple[Judgement, ...]:
        """What would be removed, each with its reason."""
        return tuple(j for j in self.judgements if j.verdict.value == "REAP")

    @property
    def empty(self) -> bool:
        """Whether nothing would be removed."""
        return not self.targets

    def __repr__(self) -> str:
        rest = len(self.judgements) - len(self.targets)
        return f"Plan({len(self.targets)} to remove, {rest} to leave{failed_looks(self.backends)})"


class Report(NamedTuple):
    """What a teardown did, verified by a second look.

    `removed`: it was there and is gone. `already_gone`: it went by itself. `remaining`: it should
    be gone and is not. `left`: it was shown and not acted on. Each judgement has its reason.
    `backends`: how each look went. `stale`: ids of records that the last look proved to name
    nothing any more. `unwritten`: why what was done could not be written down, or "".
    """

    removed: tuple[Judgement, ...] = ()
    already_gone: tuple[Judgement, ...] = ()
    remaining: tuple[Judgement, ...] = ()
    left: tuple[Judgement, ...] = ()
    backends: tuple[BackendReport, ...] = ()
    stale: tuple[str, ...] = ()
    unwritten: str = ""

    def merged(self, other: Report) -> Report:
        """Both teardowns as one."""
        return Report(
            removed=self.removed + other.removed,
            already_gone=self.already_gone + other.already_gone,
            remaining=self.remaining + other.remaining,
            left=self.left + other.left,
            backends=self.backends + other.backends,
            stale=self.stale + other.stale,
            unwritten=self.unwritten or other.unwritten,
        )

    def __repr__(self) -> str:
        names = ("removed", "already_gone", "remaining", "left")
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in names)
        return f"Report({counts}{failed_looks(self.backends)})"
