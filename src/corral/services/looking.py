"""Observe all backends at once, each within its time, and judge what they saw."""

from __future__ import annotations

from corral.decide.judge import judge
from corral.decide.keeping import is_kept
from corral.errors import EnumerationError
from corral.model.resource import BackendReport, BackendState, Observation
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from corral.contracts import Backend, View
    from corral.decide.judge import Request
    from corral.model.resource import Judgement, Sighting

LOOK_SECONDS = 5.0


class Looked(NamedTuple):
    """What the backends saw, and how each look went."""

    observations: tuple[Observation, ...]
    reports: tuple[BackendReport, ...]

    @property
    def failed(self) -> frozenset[str]:
        """The names of the backends that could not look."""
        return frozenset(r.name for r in self.reports if r.state is BackendState.FAILED)


def observe_all(
    backends: Sequence[Backend], view: View, *, seconds: float = LOOK_SECONDS
) -> Looked:
    """Ask every backend once. A look that fails or takes longer than `seconds` is FAILED."""
    results: dict[str, Observation | EnumerationError] = {}
    remote = [b for b in backends if not getattr(b, "local", False)]
    waiting = _start(remote, view, results)
    for backend in backends:
        if backend not in remote:
            results[backend.name] = _ask(backend, view)
    waiting(seconds)
    observations, reports = [], []
    for backend in backends:
        result = results.get(backend.name)
        if isinstance(result, Observation):
            observations.append(result)
            reports.append(BackendReport(backend.name, result.state, result.detail))
            continue
        detail = f"no answer within {seconds:g} s" if result is None else result.message
        reports.append(BackendReport(backend.name, BackendState.FAILED, detail))
    return Looked(tuple(observations), tuple(reports))


def _ask(backend: Backend, view: View) -> Observation | EnumerationError:
    try:
        return backend.observe(view)
    except EnumerationError as error:
        return error


def _start(
    backends: Sequence[Backend],
    view: View,
    results: dict[str, Observation | EnumerationError],
) -> Callable[[float], None]:
    """Ask each in a thread of its own; the returned function waits for all of them."""
    if not backends:
        return lambda _: None
    import threading
    import time

    def ask(backend: Backend) -> None:
        answer = _ask(backend, view)
        results.setdefault(backend.name, answer)

    threads = [threading.Thread(target=ask, args=(b,), daemon=True) for b in backends]
    for thread in threads:
        thread.start()

    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        for thread, backend in zip(threads, backends, strict=True):
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                late = EnumerationError(f"no answer within {seconds:g} s", backend=backend.name)
                results.setdefault(backend.name, late)

    return wait


def judge_all(
    observations: Iterable[Observation], view: View, request: Request
) -> tuple[Judgement, ...]:
    """Every sighting with its verdict; what `corral keep` named is kept."""
    return tuple(
        judge(_kept(sighting, view), view.world, request)
        for observation in observations
        for sighting in observation.sightings
    )


def _kept(sighting: Sighting, view: View) -> Sighting:
    return sighting._replace(kept=True) if is_kept(sighting, view.kept) else sighting
