"""An environment as `up` and `status` show it: one function, so that both say the same."""

from __future__ import annotations

from corral.services.holdings import holdings_of
from corral.store import claims, environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from corral.config import Settings
    from corral.model.environment import Environment

# What `up` keeps for itself: the user did not ask for these.
_UNSEEN = frozenset({"exclude", "directory"})


def describe(conn: Connection, environment: Environment, settings: Settings) -> dict[str, Any]:
    """`{"id", "path", "ports": {name: number}, "address", "database", "files"}`.

    `database` is None or `{"isolation", "name", "url"}` (`url` None where there is none yet);
    `files` are the absolute paths of what was written for the environment.
    """
    del settings  # claims are the truth; a setting is only a wish
    held = holdings_of(claims.of_environment(conn, environment.id))
    database = None
    if held.database is not None:
        database = {**held.database._asdict(), "url": held.database.url or None}
    return {
        "id": environment.id,
        "path": environment.place.path,
        "ports": {port.name: port.number for port in held.ports},
        "address": held.address,
        "database": database,
        "files": [
            output.path
            for output in environments.outputs(conn, environment.id)
            if output.mode not in _UNSEEN
        ],
    }
