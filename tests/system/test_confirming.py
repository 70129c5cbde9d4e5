"""What is asked right before each removal: the registry as it is at that moment."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from corral.kernel.clock import boot_id
from corral.kernel.identity import own_identity
from corral.model.report import Outcome
from corral.model.resource import BackendState, Kind, Mark, Observation, Proof, Sighting, Stack
from corral.services import sessions
from corral.services.context import context_in
from corral.services.ending import Subject, reap_job
from corral.services.environments import register
from corral.services.teardown import carry_out
from corral.store import owners, records, spool, spooled
from corral.store.sessions import Begun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from corral.contracts import RemovalContext, View
    from corral.model.report import Report
    from corral.model.resource import Judgement
    from corral.services.context import Context


class Things:
    """One container; something happens right before it would be removed.

    `mark` says whose it is. One of an environment stands in a stack that its owner started.
    """

    name = "things"
    kinds = frozenset({Kind.CONTAINER})

    def __init__(self, mark: Mark, meanwhile: Callable[[], object], owner: str = "") -> None:
        self._marks = (mark,)
        self._stack = Stack(time.time(), frozenset({owner})) if owner else None
        self._meanwhile = meanwhile
        self.there = True

    def observe(self, view: View) -> Observation:
        del view
        seen = Sighting(
            Kind.CONTAINER, "web", "web", self.name, "running", None, (("id", "web"),), self._marks
        )._replace(stack=self._stack)
        return Observation(self.name, BackendState.OK, "", (seen,) if self.there else ())

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        raise NotImplementedError

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        (target,) = targets
        self._meanwhile()
        doubt = context.confirm(target)
        if doubt:
            return (Outcome(target.sighting, "left", doubt),)
        self.there = False
        return (Outcome(target.sighting, "removed", "removed"),)


@pytest.fixture
def context(git_repo: Path) -> Context:
    return context_in(str(git_repo), os.environ, session="s-1")


def reaped(context: Context, owner: str, things: Things) -> Report:
    """End the session that has lived there, and take down what it had."""
    with context.registry.write() as conn:
        owners.release(conn, owner, epoch_id=None, now=time.time(), why="ended")
    job = reap_job(Subject(owner, None, known=True), trigger="session end", release=True)
    return carry_out(context, [things], job)


@pytest.mark.parametrize("comer", ["s-1", "s-2"])
def test_a_stack_is_left_when_somebody_comes_to_live_there_after_the_look(
    git_repo: Path, context: Context, comer: str
) -> None:
    owner = sessions.start(context).owner

    def comes() -> None:
        other = context_in(str(git_repo), os.environ, session=comer)
        sessions.start(other, anchor=os.getpid())

    mark = Mark(Proof.PROJECT, environment=register(context).id)
    stacks = Things(mark, comes, owner)
    report = reaped(context, owner, stacks)
    assert stacks.there
    assert [j.sighting.id for j in report.left] == ["web"]


@pytest.mark.parametrize("spooled_", [False, True], ids=["written", "in the spool"])
def test_what_a_session_had_is_left_when_it_resumes_after_the_look(
    context: Context, state_dir: Path, *, spooled_: bool
) -> None:
    owner = sessions.start(context).owner

    def resumes() -> None:
        if not spooled_:
            sessions.start(context, anchor=os.getpid())
            return
        # A hook that met a busy registry leaves word, which counts at once.
        anchor, boot = own_identity(), boot_id()
        begun = Begun("s-1", owner, "claude", None, boot, anchor, (), time.time(), joins=True)
        spool.append(str(state_dir), spooled.begun_entry(begun))

    things = Things(Mark(Proof.LABEL, owner=owner), resumes)
    report = reaped(context, owner, things)
    assert things.there
    assert [j.sighting.id for j in report.left] == ["web"]


def test_what_is_kept_after_the_look_is_left(context: Context) -> None:
    owner = sessions.start(context).owner

    def keeps() -> None:
        with context.registry.write() as conn:
            records.keep(conn, "container", "web")

    things = Things(Mark(Proof.LABEL, owner=owner), keeps)
    assert [j.sighting.id for j in reaped(context, owner, things).left] == ["web"]
    assert things.there


@pytest.mark.parametrize("stack", [True, False])
def test_it_goes_when_nobody_came(context: Context, *, stack: bool) -> None:
    owner = sessions.start(context).owner
    if stack:
        mark = Mark(Proof.PROJECT, environment=register(context).id)
    else:
        mark = Mark(Proof.LABEL, owner=owner)
    things = Things(mark, lambda: None, owner if stack else "")
    assert [j.sighting.id for j in reaped(context, owner, things).removed] == ["web"]
    assert not things.there
