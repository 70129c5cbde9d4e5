"""Ending processes: pinned first, looked at again, then TERM and CONT, and KILL for what stays."""

from __future__ import annotations

from corral.kernel import identity as identities
from corral.model.report import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corral.contracts import RemovalContext
    from corral.kernel.pidfd import Pinned
    from corral.model.resource import Judgement

# Long enough for a server to finish what it answers; a shell that waits for a child takes longer.
_TERM_SECONDS = 3.0
_Pinned = tuple["Judgement", "Pinned"]


def _nothing_else(pinned: Pinned) -> str:
    del pinned
    return ""


def end(
    targets: Sequence[Judgement],
    context: RemovalContext,
    *,
    patience: float = 0.0,
    still: Callable[[Pinned], str] = _nothing_else,
    first: str = "SIGTERM",
    seconds: float | None = None,
) -> tuple[Outcome, ...]:
    """End the targets together; every one is pinned before it is signalled.

    `patience` is waited for those that are about to end by themselves. `still` looks at a process
    once it is pinned, and says why it must be left, or "". `first` is the signal that asks, and
    `seconds` is waited after it. Raises EnumerationError when one can neither be pinned nor be
    shown to be gone.
    """
    from contextlib import ExitStack

    from corral.kernel.pidfd import pin, wait_all

    with ExitStack() as stack:
        outcomes: list[Outcome] = []
        pinned: list[_Pinned] = []
        for target in targets:
            wanted = identities.decode_identity(target.sighting.identity)
            try:
                process = stack.enter_context(pin(wanted))
            except identities.ProcessGoneError:
                outcomes.append(Outcome(target.sighting, "already_gone", "it had ended"))
                continue
            reason = still(process)
            if reason:
                outcomes.append(Outcome(target.sighting, "left", reason))
            else:
                pinned.append((target, process))
        if patience:
            wait_all([p for _, p in pinned], patience)
        # A stopped process keeps a signal pending until CONT.
        pinned = _signalled(pinned, context, outcomes, (first, "SIGCONT"))
        usual = min(context.gentle, _TERM_SECONDS)
        wait_all([p for _, p in pinned], usual if seconds is None else seconds)
        pinned = _signalled(pinned, context, outcomes, ("SIGKILL",))
        wait_all([p for _, p in pinned], context.force)
        outcomes += [_last(target, process) for target, process in pinned]
    return tuple(outcomes)


def _signalled(
    pinned: list[_Pinned], context: RemovalContext, outcomes: list[Outcome], names: tuple[str, ...]
) -> list[_Pinned]:
    """Signal those that still live and may still be taken; the ended ones go to `outcomes`."""
    import signal

    numbers = [getattr(signal, name) for name in names]
    going = []
    for target, process in pinned:
        if not process.alive():
            outcomes.append(Outcome(target.sighting, "removed", "ended"))
            continue
        doubt = context.confirm(target)
        if doubt:
            outcomes.append(Outcome(target.sighting, "left", doubt))
            continue
        # All must be sent.
        if sum(process.signal(number) for number in numbers) == len(numbers):
            going.append((target, process))
        else:
            outcomes.append(Outcome(target.sighting, "removed", "ended"))
    return going


def _last(target: Judgement, process: Pinned) -> Outcome:
    if not process.alive():
        return Outcome(target.sighting, "removed", "ended")
    return Outcome(target.sighting, "remaining", "it lives on after KILL (uninterruptible?)")
