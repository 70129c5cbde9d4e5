"""`corral install git`: a `post-checkout` hook that brings new worktrees up."""

from __future__ import annotations

import os

from corral.decide.git_hook import with_block, without_block
from corral.errors import CorralError, InvalidValueError, UsageError
from corral.integrations.config_files import Change, Left, Plan, find, needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.integrations.config_files import Found
    from corral.services.repository import RunProgram

_SECONDS = 20.0
_HOOK = "post-checkout"


def install(
    directory: str, program: str, environ: Mapping[str, str], run_program: RunProgram
) -> Plan:
    """What puts the block into the hook; `program` is corral's absolute path.

    Raises UsageError outside a repository, InvalidValueError for a hook that cannot be edited.
    """
    file, words = _hook(directory, environ, run_program)
    if file.content is not None and not file.mode & 0o100:
        raise InvalidValueError(
            f"{file.path} is not executable, so git does not run it",
            remedy=f"make it executable (chmod +x {file.path}), or move it away",
            resource=file.path,
        )
    try:
        after = with_block(file.content, program)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{file.path} {error.message}, so it is left as it is",
            remedy=f"mend it or move it away, or have it call: {program} up",
            resource=file.path,
        ) from error
    return Plan(needed(Change(file, after)), words=words)


def uninstall(directory: str, environ: Mapping[str, str], run_program: RunProgram) -> Plan:
    """What takes the block out again, and the hook where nothing else is in it."""
    file, _ = _hook(directory, environ, run_program)
    if file.content is None:
        return Plan(())
    try:
        after = without_block(file.content)
    except InvalidValueError as error:
        return Plan((), left=(Left(file.path, f"it {error.message}"),))
    if after is None and os.path.islink(file.path):
        # The link is the user's, and must not lead to nothing.
        after = b"#!/bin/sh\n"
    return Plan(needed(Change(file, after)))


def _hook(
    directory: str, environ: Mapping[str, str], run_program: RunProgram
) -> tuple[Found, tuple[str, ...]]:
    """The hook of the repository around a directory, and words on where it lies."""
    git = _Git({k: v for k, v in environ.items() if not k.startswith("GIT_")}, run_program)
    common = git.asked(directory, "--git-common-dir")
    if common is None:
        raise UsageError(
            f"{directory} is in no git repository", remedy="name a checkout with --env DIR"
        )
    # A relative core.hooksPath counts from the top, which a bare repository does not have.
    top = git.asked(directory, "--show-toplevel") or directory
    hooks = os.path.join(top, git.asked(top, "--git-path", "hooks") or "hooks")
    if os.path.exists(hooks) and not os.path.isdir(hooks):
        raise InvalidValueError(
            f"{hooks}, where core.hooksPath leads, is no directory, so git runs no hooks",
            remedy="name another: git config core.hooksPath DIR, or --unset it",
            resource=hooks,
        )
    common = os.path.realpath(os.path.join(directory, common))
    real = os.path.realpath(hooks)
    words: tuple[str, ...] = ()
    if not real.startswith(f"{common}/"):
        words = (f"{hooks} is where core.hooksPath leads: it may serve other repositories as well",)
        if real.startswith(f"{os.path.realpath(top)}/"):
            words = (f"{hooks} lies in this worktree: others have the hook once it is committed",)
    return find(os.path.join(hooks, _HOOK), mode=0o755), words


class _Git:
    """Asks `git rev-parse`, with every `GIT_*` variable unset."""

    def __init__(self, environ: Mapping[str, str], run_program: RunProgram) -> None:
        self._environ = environ
        self._run = run_program

    def asked(self, directory: str, *words: str) -> str | None:
        """The answer, or None where git has none there."""
        argv = ["git", "rev-parse", *words]
        try:
            done = self._run(argv, timeout=_SECONDS, env=self._environ, cwd=directory)
        except CorralError as error:
            raise UsageError(error.message, remedy=error.remedy or "install git") from error
        return done.stdout.removesuffix("\n") if done.returncode == 0 else None
