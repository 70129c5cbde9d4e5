"""What every environment's configuration protects: an owner moves about, and so does a cleanup."""

from __future__ import annotations

from corral.errors import ConfigurationError
from corral.store import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.services.context import Context


def protecting(context: Context) -> Context:
    """The context with what any environment of this registry protects as well.

    A configuration that is wrong protects nothing by name; the worktree that it is in says so.
    """
    return protecting_with_faults(context)[0]


def protecting_with_faults(context: Context) -> tuple[Context, dict[str, str]]:
    """Like `protecting`; also, by environment, what is wrong where that cannot be told."""
    from corral.config import load_settings

    protect, faults = context.settings.protect, {}
    with context.registry.read() as conn:
        known, _ = environments.all_(conn)
    for environment in known:
        if environment.place.path == context.directory:
            continue
        try:
            protect |= load_settings(environment.place.path, context.environ).protect
        except ConfigurationError as error:
            faults[environment.id] = str(error)
    return context._replace(settings=context.settings._replace(protect=protect)), faults
