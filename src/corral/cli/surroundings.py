"""Build the context of one call from the process's surroundings."""

from __future__ import annotations

import os

from corral.services.context import context_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from corral.services.context import Context


def context_of(arguments: Namespace, *, anywhere: bool = False) -> Context:
    """The context that the arguments and this process's variables name.

    `anywhere`: the command means the whole machine or a named owner, not this directory.

    Raises UsageError when the directory is not there, ConfigurationError for wrong settings and
    StateDirectoryError when the state directory cannot be used.
    """
    return context_in(arguments.env, os.environ, session=arguments.session, anywhere=anywhere)
