"""The state that stand-ins share: one JSON file behind one lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_EMPTY: dict[str, Any] = {
    "containers": {},
    "networks": {},
    "volumes": {},
    "images": {},
    "clusters": {},
    "faults": {},
    "calls": [],
}


class State:
    """The shared state in a directory. `edit()` yields it for changes, `read()` is a copy."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self._file = os.path.join(self.directory, "state.json")

    @contextlib.contextmanager
    def edit(self) -> Iterator[dict[str, Any]]:
        with open(os.path.join(self.directory, "lock"), "a", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = self._load()
            yield content
            new = f"{self._file}.new"
            with open(new, "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.replace(new, self._file)

    def read(self) -> dict[str, Any]:
        return self._load()

    def _load(self) -> dict[str, Any]:
        try:
            with open(self._file, encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            return json.loads(json.dumps(_EMPTY))  # type: ignore[no-any-return]
        return found

    def fault(self, where: str) -> str:
        """The fault that is set for a place ("kind list", "engine"), "" for none."""
        return str(self._load()["faults"].get(where, ""))

    def set_fault(self, where: str, fault: str = "") -> None:
        with self.edit() as content:
            content["faults"][where] = fault

    def note_call(self, words: list[str]) -> None:
        with self.edit() as content:
            content["calls"].append(words)

    def calls(self, *words: str) -> list[list[str]]:
        """The calls of the programs that began with these words."""
        every: list[list[str]] = self._load()["calls"]
        return [call for call in every if call[: len(words)] == list(words)]


def new_id() -> str:
    """A full id as engines give: 64 hexadecimal digits."""
    return os.urandom(32).hex()
