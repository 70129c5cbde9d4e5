"""The context of a Python program that calls corral, kept from call to call."""

from __future__ import annotations

import atexit
import os

from corral.services.context import context_in
from corral.store import statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.services.context import Context

_Key = tuple[int, str, str]

_last: dict[_Key, Context] = {}  # the last one only: a registry keeps its database open
atexit.register(_last.clear)


def calling_context(directory: str | None = None) -> Context:
    """The context of a directory (None: the working directory).

    It is the last one again while process, directory and state directory are the same; settings
    are not read again then. Raises the errors of `context_in`.
    """
    state_dir = statedir.locate(os.environ, os.path.expanduser("~"))
    key = (os.getpid(), directory or os.getcwd(), state_dir)
    found = _last.get(key)
    if found is None:
        found = context_in(key[1], os.environ)
        _last.clear()
        _last[key] = found
    return found
