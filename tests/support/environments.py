"""Environments brought up within the test's own process, as the command line does it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from corral.services import environments
from corral.services.context import context_in
from corral.services.outputs import remove_outputs
from corral.services.up import Request, up
from corral.services.variables import variables_of
from corral.wiring import run_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.services.context import Context
    from corral.services.trust import Brought
    from corral.services.up import Up


def context_of(directory: Path, **variables: str) -> Context:
    """A context in a directory, with more variables than the test's own."""
    return context_in(str(directory), {**os.environ, **variables})


def bring_up(
    directory: Path,
    request: Request | None = None,
    ask: Callable[[Brought], bool] | None = None,
    /,
    **variables: str,
) -> Up:
    """`corral up` in a directory."""
    return up(context_of(directory, **variables), request or Request(), run_program, ask)


def ports_of(directory: Path, request: Request | None = None) -> dict[str, int]:
    """The ports that `corral up` gives a directory."""
    found: dict[str, int] = bring_up(directory, request).environment["ports"]
    return found


def take_files_back(directory: Path) -> dict[str, tuple[str, str]]:
    """Remove what `up` wrote: result and reason by path, relative to the directory."""
    context = context_of(directory)
    removed = remove_outputs(context, environments.require(context))
    return {os.path.relpath(path, directory): (result, why) for path, result, why in removed}


def variables_in(directory: Path) -> dict[str, str]:
    """The variables of a directory's environment."""
    context = context_of(directory)
    environment = environments.require(context)
    with context.registry.read() as conn:
        return dict(variables_of(conn, environment, context.settings))
