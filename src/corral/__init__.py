"""An environment of its own for every parallel worker on a machine.

The public names are loaded when they are first used: `import corral` itself costs next to nothing.
"""

from __future__ import annotations

# typing costs more to import than all of this; type checkers know this name without it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral._version import __version__ as __version__
    from corral.api import Environment as Environment
    from corral.api import cleanup as cleanup
    from corral.api import lifecycle_lock as lifecycle_lock
    from corral.api import prepare_cleanup as prepare_cleanup
    from corral.decide.releases import canonicalize_release_id as canonicalize_release_id
    from corral.errors import CorralError as CorralError
    from corral.errors import EnumerationError as EnumerationError
    from corral.errors import ForeignError as ForeignError
    from corral.errors import HeldError as HeldError
    from corral.errors import InvalidValueError as InvalidValueError
    from corral.model.allocation import Allocation as Allocation
    from corral.render import DbIsolation as DbIsolation
    from corral.render import EnvIsolationSpec as EnvIsolationSpec
    from corral.render import OutputFormat as OutputFormat
    from corral.render import container_name as container_name
    from corral.render import generate_docker_compose_override as generate_docker_compose_override
    from corral.render import generate_dotenv as generate_dotenv
    from corral.render import generate_env_config as generate_env_config
    from corral.render import generate_shell_exports as generate_shell_exports
    from corral.render import schema_name as schema_name
    from corral.services.allocations import EphemeralPort as EphemeralPort
    from corral.services.allocations import PortRun as PortRun
    from corral.services.allocations import allocate_ephemeral_port as allocate_ephemeral_port
    from corral.services.allocations import allocate_port_run as allocate_port_run
    from corral.services.allocations import list_allocations as list_allocations
    from corral.services.allocations import reap_stale_allocations as reap_stale_allocations
    from corral.services.allocations import record_allocation as record_allocation
    from corral.services.allocations import release_allocation as release_allocation
    from corral.services.assigning import assign_port as assign_port
    from corral.services.locks import HeldLock as HeldLock
    from corral.services.mutex import acquire_conductor_mutex as acquire_conductor_mutex
    from corral.services.mutex import release_conductor_mutex as release_conductor_mutex

# Each public name with the module that has it; the imports above say the same to type checkers.
_HOMES = {
    "Allocation": "model.allocation",
    "CorralError": "errors",
    "DbIsolation": "render",
    "EnumerationError": "errors",
    "EnvIsolationSpec": "render",
    "Environment": "api",
    "EphemeralPort": "services.allocations",
    "ForeignError": "errors",
    "HeldError": "errors",
    "HeldLock": "services.locks",
    "InvalidValueError": "errors",
    "OutputFormat": "render",
    "PortRun": "services.allocations",
    "__version__": "_version",
    "acquire_conductor_mutex": "services.mutex",
    "allocate_ephemeral_port": "services.allocations",
    "allocate_port_run": "services.allocations",
    "assign_port": "services.assigning",
    "canonicalize_release_id": "decide.releases",
    "cleanup": "api",
    "container_name": "render",
    "generate_docker_compose_override": "render",
    "generate_dotenv": "render",
    "generate_env_config": "render",
    "generate_shell_exports": "render",
    "lifecycle_lock": "api",
    "list_allocations": "services.allocations",
    "prepare_cleanup": "api",
    "reap_stale_allocations": "services.allocations",
    "record_allocation": "services.allocations",
    "release_allocation": "services.allocations",
    "release_conductor_mutex": "services.mutex",
    "schema_name": "render",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 (one table, not two)


if not TYPE_CHECKING:  # or every wrong name would seem to be there

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'corral' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"corral.{home}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
