"""An environment in a temporary directory, anchored to this process and proven empty at its end."""

from __future__ import annotations

import os

from corral.api import Environment
from corral.decide.judge import Request, Trigger
from corral.errors import UsageError
from corral.services import ending, sessions
from corral.services.context import context_in
from corral.services.giving_up import give_up
from corral.services.launching import OWNER_VARIABLE
from corral.services.looking import judge_all, observe_all
from corral.services.places import locate
from corral.services.view import look
from corral.store import claims, records
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import NoReturn

    from corral.model.resource import BackendReport


class TemporaryEnvironment:
    """An environment of its own in `path`, for a session of its own.

    It is in the user's registry: its ports are nobody else's, and should this process be killed,
    the next `corral cleanup` finds what it had. Raises UsageError where `path` is within a git
    repository, for then the environment would be that repository's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if locate(str(path)).kind == "git":
            raise UsageError(
                f"{path} lies within a git repository, whose environment is not for a test to end",
                remedy="let pytest use another directory: --basetemp",
            )
        self.session = f"pytest-{os.urandom(6).hex()}"
        self._context = context_in(str(path), os.environ, session=self.session)
        self._started = sessions.start(self._context, anchor=os.getpid(), worker="pytest")

    @property
    def environment(self) -> Environment:
        """The Python API of this environment: claim_ports, variables, run, status, reap."""
        return Environment(self._context)

    @property
    def environ(self) -> dict[str, str]:
        """Variables for what a test starts: the environment's, the session and the owner's mark."""
        own = {"CORRAL_SESSION": self.session, OWNER_VARIABLE: self._started.owner}
        return {**os.environ, **self.environment.variables(), **own}

    def __getattr__(self, name: str) -> NoReturn:
        """Say where that is; only asked for what is not here."""
        if hasattr(Environment, name):
            words = f"it is a method of the environment: corral_environment.environment.{name}"
        else:
            words = "it has path, session, environment (the Python API) and environ (variables)"
        raise AttributeError(f"corral_environment has no {name}: {words}")

    def take_down(self) -> tuple[str, ...]:
        """End everything that is of this environment or session; words on what is left."""
        context = self._context
        every = backends(context)
        ending.reap(context, every, force=True)
        give_up(context, every, force=True)
        sessions.end(context, force=True)
        return tuple(self._left())

    def _left(self) -> Iterator[str]:
        """What a fresh look finds, and every look that failed: that proves nothing either."""
        context, mine = self._context, self._started
        with context.registry.read() as conn:
            for claim in claims.of_environment(conn, mine.environment):
                yield f"claim of {claim.kind.value} {claim.value}"
            for record in records.of_environment(conn, mine.environment):
                yield f"record of {record.kind.value} {record.name or record.id}"
        view = look(context, wide=True)
        looked = observe_all(backends(context), view)
        yield from (_words(report) for report in looked.reports if report.name in looked.failed)
        request = Request(Trigger.CLEANUP, data=True, now=view.now)
        for judgement in judge_all(looked.observations, view, request):
            if judgement.owner == mine.owner or judgement.environment == mine.environment:
                seen = judgement.sighting
                yield f"{seen.kind.value} {seen.id} {seen.name}: {judgement.reason}"


def _words(report: BackendReport) -> str:
    return f"{report.name} cannot be looked at: {report.detail}"
