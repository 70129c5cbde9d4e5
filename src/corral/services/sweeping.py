"""Remove what a corral that was killed while it wrote left beside an environment's files."""

from __future__ import annotations

import os

from corral.kernel import leavings
from corral.services import placing
from corral.services.unplacing import COPY
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.environment import Environment, Output
    from corral.services.context import Context


def sweep(context: Context, environment: Environment, outputs: Iterable[Output]) -> None:
    """Remove half-written files of dead writers, and half-made copies where corral makes copies.

    Looked at are the directories that the environment's files lie in, its own in the state
    directory, and the places in git's directory that corral writes to.
    """
    known = tuple(outputs)
    copies = {os.path.dirname(output.path) for output in known if output.mode == COPY}
    place = environment.place
    directories = {os.path.dirname(output.path) for output in known} | {
        statedir.environment_dir(context.state_dir, environment.id),
        *((place.admin,) if place.admin else ()),
    }
    for directory in sorted(directories):
        for path, is_directory in leavings.abandoned(directory):
            if is_directory and directory not in copies:
                continue
            try:
                placing.remove_tree(path)
            except OSError:
                continue  # another corral was faster, or it may not be removed: the next one's
