"""Looks that fail, removals that lie: one backend's trouble is its own, and nothing is made up."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from corral.decide.judge import Request, Trigger
from corral.errors import EnumerationError
from corral.model.report import Outcome
from corral.model.resource import BackendState, Kind, Mark, Observation, Proof, Sighting
from corral.services.context import context_in
from corral.services.environments import register
from corral.services.looking import observe_all
from corral.services.owners import ensure_acting
from corral.services.teardown import Teardown, carry_out, exit_status
from corral.services.view import look

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from corral.contracts import RemovalContext, View
    from corral.model.resource import Judgement
    from corral.services.context import Context


class Shelf:
    """A backend of things in memory, whose looks and removals can be told to go wrong."""

    kinds = frozenset({Kind.CONTAINER})

    def __init__(self, name: str, owner: str, things: Sequence[str]) -> None:
        self.name = name
        self.owner = owner
        self.things = list(things)
        self.looks = 0
        self.fails_at = 0
        self.hangs = threading.Event()
        self.hangs.set()
        self.lies = False
        self.asked: list[str] = []

    def _sighting(self, thing: str) -> Sighting:
        mark = Mark(Proof.LABEL, owner=self.owner)
        identity = (("id", thing),)
        return Sighting(Kind.CONTAINER, thing, thing, self.name, "running", None, identity, (mark,))

    def observe(self, view: View) -> Observation:
        del view
        self.looks += 1
        self.hangs.wait(30)
        if self.looks == self.fails_at:
            raise EnumerationError("the daemon said no", backend=self.name)
        seen = tuple(self._sighting(thing) for thing in self.things)
        return Observation(self.name, BackendState.OK, "", seen)

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        del view, kind
        return self._sighting(identifier) if identifier in self.things else None

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        outcomes = []
        for target in targets:
            assert context.confirm(target) == ""
            self.asked.append(target.sighting.id)
            if target.sighting.id not in self.things:
                outcomes.append(Outcome(target.sighting, "already_gone", "gone"))
                continue
            if not self.lies:
                self.things.remove(target.sighting.id)
            outcomes.append(Outcome(target.sighting, "removed", "said so"))
        return tuple(outcomes)


@pytest.fixture
def context(git_repo: Path) -> Context:
    return context_in(str(git_repo), os.environ)


@pytest.fixture
def owner(context: Context) -> str:
    return ensure_acting(context, register(context)).owner


def _reap(context: Context, owner: str, *backends: Shelf) -> Teardown:
    del context, backends
    return Teardown(Request(Trigger.REAP, owner=owner), "test")


def test_a_failed_look_stops_that_backend_only(context: Context, owner: str) -> None:
    broken, sound = Shelf("broken", owner, ["a"]), Shelf("sound", owner, ["b"])
    broken.fails_at = 1
    report = carry_out(context, [broken, sound], _reap(context, owner))
    assert (broken.asked, sound.asked) == ([], ["b"])
    assert [j.sighting.id for j in report.removed] == ["b"]
    assert exit_status(report) == 3
    assert {r.name: r.state.value for r in report.backends} == {"broken": "failed", "sound": "ok"}


def test_a_look_that_fails_after_the_removal_is_not_taken_for_done(
    context: Context, owner: str
) -> None:
    shelf = Shelf("shelf", owner, ["a"])
    shelf.fails_at = 2
    report = carry_out(context, [shelf], _reap(context, owner))
    assert report.removed == ()
    assert "could not be verified" in report.remaining[0].reason
    assert exit_status(report) == 3


def test_a_tool_that_says_done_and_did_nothing_is_found_out(context: Context, owner: str) -> None:
    shelf = Shelf("shelf", owner, ["a", "b"])
    shelf.lies = True
    report = carry_out(context, [shelf], _reap(context, owner))
    assert sorted(j.sighting.id for j in report.remaining) == ["a", "b"]
    assert report.removed == ()
    assert exit_status(report) == 1
    assert shelf.asked == ["a", "b"], "a thing is not removed over and over"


def test_a_backend_that_hangs_is_a_failed_look(context: Context, owner: str) -> None:
    stuck, sound = Shelf("stuck", owner, ["a"]), Shelf("sound", owner, ["b"])
    stuck.hangs.clear()
    looked = observe_all([stuck, sound], look(context), seconds=0.2)
    stuck.hangs.set()
    assert looked.failed == {"stuck"}
    assert [o.backend for o in looked.observations] == ["sound"]


def test_a_failed_backend_is_not_asked_again_in_that_run(context: Context, owner: str) -> None:
    broken, sound = Shelf("broken", owner, ["a"]), Shelf("sound", owner, ["b"])
    broken.fails_at = 1
    carry_out(context, [broken, sound], _reap(context, owner))
    assert broken.looks == 1
    assert sound.looks == 2


def test_what_is_gone_before_it_is_removed_is_already_gone(context: Context, owner: str) -> None:
    class Vanishing(Shelf):
        def remove(
            self, targets: Sequence[Judgement], context: RemovalContext
        ) -> tuple[Outcome, ...]:
            self.things.clear()
            return super().remove(targets, context)

    report = carry_out(context, [Vanishing("shelf", owner, ["a"])], _reap(context, owner))
    assert [j.sighting.id for j in report.already_gone] == ["a"]
    assert exit_status(report) == 0
