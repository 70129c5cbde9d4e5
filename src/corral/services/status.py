"""What there is: this owner's and environment's things, what is shared, orphaned or unknown."""

from __future__ import annotations

from corral.decide.clearing import with_command
from corral.decide.judge import Request, Trigger
from corral.model.report import failed_looks
from corral.model.resource import Kind, Verdict
from corral.model.tuples import NamedTuple
from corral.services import owners as rules
from corral.services.environments import find
from corral.services.looking import judge_all, observe_all
from corral.services.protecting import protecting
from corral.services.view import look, note_ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from corral.contracts import Backend, View
    from corral.model.environment import Environment
    from corral.model.record import BadRecord
    from corral.model.resource import BackendReport, Judgement
    from corral.services.context import Acting, Context


_SHOWN = ("owned", "kept", "shared", "orphans", "unknown")


class Status(NamedTuple):
    """One look, sorted into what a person asks for.

    `acting`: the owner that the caller acts for. `owned`: what it or this environment has.
    `kept`: what was exempted. `shared`: the shared runtime. `orphans`: what `cleanup` would take.
    `unknown`: what nobody can tell. `bad`: records that cannot be read. `backends`: how each look
    went.
    """

    acting: Acting | None
    environment: Environment | None
    owned: tuple[Judgement, ...]
    kept: tuple[Judgement, ...]
    shared: tuple[Judgement, ...]
    orphans: tuple[Judgement, ...]
    unknown: tuple[Judgement, ...]
    bad: tuple[BadRecord, ...]
    backends: tuple[BackendReport, ...]
    view: View

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(getattr(self, name))} {name}" for name in _SHOWN)
        return f"Status({counts}{failed_looks(self.backends)})"


def status(context: Context, backends: Sequence[Backend], *, wide: bool = False) -> Status:
    """Look at everything. `wide` also shows what other live owners and other registries have.

    The first sight of a dead anchor is recorded, so that its grace runs; nothing else is written.
    """
    note_ends(context)
    seen = _look(context, backends, wide=wide)
    if not seen.orphans:
        return seen
    # What would be taken is judged as the taking does; that is not worth reading files otherwise.
    wider = protecting(context)
    if wider.settings.protect == context.settings.protect:
        return seen
    return _look(wider, backends, wide=wide)


def _look(context: Context, backends: Sequence[Backend], *, wide: bool) -> Status:
    environment = find(context)
    acting = rules.acting(context, environment)
    view = look(context, wide=wide)
    looked = observe_all(backends, view)
    judged = judge_all(looked.observations, view, Request(Trigger.CLEANUP, data=True, now=view.now))
    groups: dict[str, list[Judgement]] = {name: [] for name in (*_SHOWN, "others", "strangers")}
    passing = _of_this_look(judged, context.pid)
    for judgement in judged:
        if judgement.sighting.key in passing:
            continue
        group = _group(judgement, acting, environment)
        foreign = group in {"unknown", "shared"} and judgement.code != "shared"
        if foreign and _of_another_registry(judgement, view):
            group = "strangers"
        groups[group].append(judgement)
    owned = [*groups["owned"], *(groups["others"] if wide else ())]
    owned = [with_command(j) if j.code == "grace" else j for j in owned]
    return Status(
        acting,
        environment,
        tuple(owned),
        tuple(groups["kept"]),
        tuple(groups["shared"]),
        tuple(map(with_command, groups["orphans"])),
        (*groups["unknown"], *(groups["strangers"] if wide else ())),
        view.bad,
        looked.reports,
        view,
    )


def _of_this_look(judged: Sequence[Judgement], pid: int) -> set[Any]:
    """The keys of the looking command itself and of the shells that only carry it.

    In an agent's shell all of them bear the agent's mark, and they are gone a moment later.
    """
    processes = [j.sighting for j in judged if j.sighting.kind is Kind.PROCESS]
    own = next((s for s in processes if s.id == str(pid) and not s.record), None)
    if own is None:
        return set()
    above = {str(one) for one, _ in own.ancestors}
    carriers = (s for s in processes if s.id in above and not s.record)
    return {own.key, *(s.key for s in carriers)}


def _of_another_registry(judgement: Judgement, view: View) -> bool:
    """Whether a mark names an owner that only another state directory can know."""
    return judgement.owner is not None and judgement.owner not in view.world.owners


def _group(judgement: Judgement, acting: Acting | None, environment: Environment | None) -> str:
    if judgement.code == "shared" or _status_only(judgement):
        return "shared"
    if judgement.code == "kept":
        return "kept"
    if judgement.verdict is Verdict.UNKNOWN:
        return "unknown"
    if judgement.verdict is Verdict.REAP:
        return "orphans"
    mine = acting is not None and judgement.owner == acting.owner
    here = environment is not None and judgement.environment == environment.id
    # A crash is everybody's to see: nobody else may be there to clear up after it.
    passing = judgement.code in {"creating", "grace"}
    return "owned" if mine or here or passing else "others"


def _status_only(judgement: Judgement) -> bool:
    return judgement.code == "protected" and judgement.reason.endswith("only ever shown")
