"""The command that status names for what an ended owner left."""

from __future__ import annotations

import pytest

from corral.decide.clearing import with_command
from corral.model.resource import Judgement, Kind, Sighting, Verdict


def _said(verdict: Verdict, code: str, session: str | None, *, data: bool = False) -> str:
    sighting = Sighting(Kind.VOLUME, "7", "", "docker", "present", None, (), data=data)
    return with_command(Judgement(sighting, verdict, "why", code, session=session)).reason


@pytest.mark.parametrize(
    ("code", "session", "data", "command"),
    [
        ("owner-over", "s-1", False, "corral reap --session=s-1"),
        ("owner-over", "-x 'y", False, "corral reap --session='-x '\"'\"'y'"),
        ("owner-over", None, False, "corral cleanup"),
        ("owner-over", "s-1", True, "corral cleanup --data"),
        ("environment-gone", "s-1", False, "corral cleanup"),
        ("run-directory-gone", None, False, "corral cleanup"),
    ],
)
def test_an_orphan_is_followed_by_what_takes_it(
    code: str, session: str | None, data: bool, command: str
) -> None:
    assert _said(Verdict.REAP, code, session, data=data) == f"why; {command} takes it"


@pytest.mark.parametrize(
    ("session", "data", "words"),
    [
        ("s-1", False, "corral reap --session=s-1 takes it now"),
        (None, False, "corral cleanup takes it then"),
        ("s-1", True, "corral cleanup --data takes it then"),
    ],
)
def test_within_the_grace_only_its_own_session_can_be_named(
    session: str | None, data: bool, words: str
) -> None:
    assert _said(Verdict.KEEP, "grace", session, data=data) == f"why; {words}"
