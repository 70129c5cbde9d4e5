"""The few questions that only git can answer, asked with every `GIT_*` variable unset.

A hook's GIT_DIR or GIT_INDEX_FILE would lead git to another repository than the one meant. And a
repository may come with its own `.git/config`, whose commands are not run for a question.
"""

from __future__ import annotations

import os

from corral.errors import CorralError, EnumerationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol
else:
    Protocol = object

_SECONDS = 20.0
_BATCH = 200  # paths on one command line
_COMMANDLESS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")


class Ran(Protocol):
    """What a program that ended left."""

    @property
    def returncode(self) -> int:
        """Its exit status; negative for a signal."""

    @property
    def stdout(self) -> str:
        """What it wrote to stdout."""

    @property
    def stderr(self) -> str:
        """What it wrote to stderr."""


class RunProgram(Protocol):
    """Runs a program to its end; raises a CorralError when it cannot be run or takes too long."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Ran:
        """What the program left."""


class Repository:
    """One checkout's git, asked through `run`."""

    def __init__(self, root: str, environ: Mapping[str, str], run: RunProgram) -> None:
        self._root = root
        self._run = run
        self._environ = {k: v for k, v in environ.items() if not k.startswith("GIT_")}
        self._environ["GIT_OPTIONAL_LOCKS"] = "0"
        self._environ["GIT_NO_LAZY_FETCH"] = "1"
        self._environ["GIT_ALLOW_PROTOCOL"] = ""  # before git 2.44: a fetch that finds no way

    def tracked(self, paths: Sequence[str]) -> frozenset[str]:
        """Those of the relative paths that git tracks, themselves or something below them.

        Raises EnumerationError when git cannot tell.
        """
        if not os.path.lexists(os.path.join(self._root, ".git")) or not paths:
            return frozenset()
        listed = self._lines("ls-files", "-z", "--", *paths)
        return frozenset(
            path
            for path in paths
            if any(line == path or line.startswith(f"{path}/") for line in listed)
        )

    def ignored_and_matched(self, patterns_file: str) -> tuple[str, ...]:
        """The files that git ignores and that a pattern of the file (gitignore syntax) matches.

        Raises EnumerationError when git cannot tell.
        """
        others = ("ls-files", "--others", "--ignored", "-z")
        matched = self._lines(*others, f"--exclude-from={patterns_file}")
        found: list[str] = []
        for start in range(0, len(matched), _BATCH):
            batch = matched[start : start + _BATCH]
            ignored = set(self._lines(*others, "--exclude-standard", "--", *batch))
            found += [path for path in batch if path in ignored]
        return tuple(found)

    def _lines(self, *words: str) -> list[str]:
        argv = ["git", "--literal-pathspecs", *_COMMANDLESS, *words]
        try:
            done = self._run(argv, timeout=_SECONDS, env=self._environ, cwd=self._root)
        except EnumerationError:
            raise
        except CorralError as error:
            # The program is missing: nobody can tell what it would have said.
            raise EnumerationError(error.message, backend="git", remedy=error.remedy) from error
        if done.returncode != 0:
            words_ = done.stderr.strip().splitlines()
            raise EnumerationError(
                f"git cannot tell what it tracks in {self._root}: "
                f"{words_[-1] if words_ else f'exit {done.returncode}'}",
                backend="git",
            )
        return [line for line in done.stdout.split("\0") if line]
