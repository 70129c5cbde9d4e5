"""What an engine says of a removal is believed only after a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corral.backends.containers import ContainerBackend
from corral.backends.engine.endpoints import Endpoint
from corral.errors import EnumerationError
from corral.model.resource import Kind
from support.engine_views import remove, targets, view
from support.ill_engine import IllEngine, done, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.model.report import Outcome


def removed(engine: IllEngine, *, seconds: float = 5.0) -> dict[str, Outcome]:
    backend = ContainerBackend(Endpoint("docker", f"unix://{engine.path}"), {})
    found = targets(backend, view(), Kind.CONTAINER)
    return remove(backend, found, view(), seconds=seconds)


def test_what_is_being_removed_is_waited_for(private_root: Path) -> None:
    listings = iter(range(100))

    def on_delete(identifier: str) -> bytes:
        engine.states[identifier] = "removing"
        return done()

    def on_list() -> None:
        if engine.states.get("web") == "removing" and next(listings) > 3:
            del engine.states["web"]

    with IllEngine(private_root / "s", on_delete, on_list) as engine:
        engine.states["web"] = "running"
        assert removed(engine)["web"].result == "removed"


@pytest.mark.parametrize("state", ["removing", "dead"])
def test_what_stays_in_a_half_way_state_is_reported_with_it(private_root: Path, state: str) -> None:
    def on_delete(identifier: str) -> bytes:
        engine.states[identifier] = state
        return done()

    with IllEngine(private_root / "s", on_delete) as engine:
        engine.states["web"] = "exited"
        outcome = removed(engine, seconds=0.2)["web"]
    assert outcome.result == "remaining"
    assert outcome.reason.endswith(f"still there, {state}")


def test_a_done_that_does_nothing_is_remaining(private_root: Path) -> None:
    with IllEngine(private_root / "s", lambda _: done()) as engine:
        engine.states["web"] = "exited"
        assert removed(engine, seconds=0.2)["web"].result == "remaining"


def test_a_removal_that_somebody_else_is_at_is_no_failure(private_root: Path) -> None:
    def on_delete(identifier: str) -> bytes:
        del engine.states[identifier]
        return refusal("409 Conflict", "removal of container web is already in progress")

    with IllEngine(private_root / "s", on_delete) as engine:
        engine.states["web"] = "exited"
        assert removed(engine)["web"].result == "removed"


def test_an_error_for_what_is_gone_already_is_success(private_root: Path) -> None:
    def on_delete(identifier: str) -> bytes:
        del engine.states[identifier]
        return refusal("404 Not Found", "No such container: web")

    with IllEngine(private_root / "s", on_delete) as engine:
        engine.states["web"] = "exited"
        assert removed(engine)["web"].result == "already_gone"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (lambda: refusal("500 X", "driver failed to remove root filesystem"), "driver failed"),
        (lambda: refusal("409 Conflict", "conflict: paused"), "conflict: paused"),
        (lambda: b"", "closed the connection"),
        (lambda: b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "no HTTP"),
    ],
)
def test_one_that_cannot_be_removed_is_reported_and_the_others_go(
    private_root: Path, reply: Callable[[], bytes], words: str
) -> None:
    def on_delete(identifier: str) -> bytes:
        if identifier == "bad":
            return reply()
        del engine.states[identifier]
        return done()

    with IllEngine(private_root / "s", on_delete) as engine:
        engine.states.update(dict.fromkeys(("one", "bad", "two"), "exited"))
        outcomes = removed(engine)
    assert {name: o.result for name, o in outcomes.items()} == {
        "one": "removed",
        "bad": "remaining",
        "two": "removed",
    }
    assert words in outcomes["bad"].reason


def test_a_look_that_fails_after_the_removal_is_no_success(private_root: Path) -> None:
    deleted: list[str] = []

    def on_delete(identifier: str) -> bytes:
        deleted.append(identifier)
        return done()

    def on_list() -> None:
        if deleted:
            raise BrokenPipeError  # the connection is closed without an answer

    with IllEngine(private_root / "s", on_delete, on_list) as engine:
        engine.states["web"] = "exited"
        with pytest.raises(EnumerationError, match="closed the connection"):
            removed(engine)
