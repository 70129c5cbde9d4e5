"""Wait for a condition with a deadline: the only form of waiting in tests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def eventually(predicate: Callable[[], T], seconds: float = 10.0, message: str = "") -> T:
    """The first true value of `predicate()` within `seconds`, asked every few milliseconds.

    Raises AssertionError with `message` and the last value when the time is over.
    """
    deadline = time.monotonic() + seconds
    pause = 0.001
    while not (value := predicate()):
        if time.monotonic() > deadline:
            what = message or getattr(predicate, "__name__", "the condition")
            raise AssertionError(f"not within {seconds} s: {what} (last: {value!r})")
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
    return value
