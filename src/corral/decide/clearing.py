"""The exact command that takes an orphan, or what may become one, down by hand."""

from __future__ import annotations

from corral.model.resource import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.resource import Judgement

# Judged for what a cleanup would do: the owner's process died, or it was released.
_BY_SESSION = frozenset({"grace", "owner-over"})


def with_command(judgement: Judgement) -> Judgement:
    """The judgement of a cleanup, its reason followed by the command that clears the thing."""
    now = judgement.verdict is Verdict.REAP
    if judgement.sighting.data:
        words = f"corral cleanup --data takes it{'' if now else ' then'}"
    elif judgement.code in _BY_SESSION and judgement.session is not None:
        from shlex import quote

        words = f"corral reap --session={quote(judgement.session)} takes it{'' if now else ' now'}"
    else:
        words = f"corral cleanup takes it{'' if now else ' then'}"
    return judgement._replace(reason=f"{judgement.reason}; {words}")
