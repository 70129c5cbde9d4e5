"""Environment values to text: one file per family of formats, each name loaded when first used."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.assign import assign_port
    from corral.render.block import find_blocks, place_block, remove_block
    from corral.render.formats import FORMATS, check_format, render_text
    from corral.render.ids import container_name, schema_name
    from corral.render.shell import quote as quote_for_shell
    from corral.render.spec import DbIsolation, EnvIsolationSpec, OutputFormat
    from corral.render.stateless import (
        generate_docker_compose_override,
        generate_dotenv,
        generate_env_config,
        generate_shell_exports,
    )
    from corral.render.variables import check_name, check_value

__all__ = [
    "FORMATS",
    "DbIsolation",
    "EnvIsolationSpec",
    "OutputFormat",
    "assign_port",
    "check_format",
    "check_name",
    "check_value",
    "container_name",
    "find_blocks",
    "generate_docker_compose_override",
    "generate_dotenv",
    "generate_env_config",
    "generate_shell_exports",
    "place_block",
    "quote_for_shell",
    "remove_block",
    "render_text",
    "schema_name",
]

# A shell's exports need neither a YAML writer nor dataclasses: start-up time is a budget.
_HOMES = {
    "FORMATS": ("formats", "FORMATS"),
    "DbIsolation": ("spec", "DbIsolation"),
    "EnvIsolationSpec": ("spec", "EnvIsolationSpec"),
    "OutputFormat": ("spec", "OutputFormat"),
    "assign_port": ("assign", "assign_port"),
    "check_format": ("formats", "check_format"),
    "check_name": ("variables", "check_name"),
    "check_value": ("variables", "check_value"),
    "container_name": ("ids", "container_name"),
    "find_blocks": ("block", "find_blocks"),
    "generate_docker_compose_override": ("stateless", "generate_docker_compose_override"),
    "generate_dotenv": ("stateless", "generate_dotenv"),
    "generate_env_config": ("stateless", "generate_env_config"),
    "generate_shell_exports": ("stateless", "generate_shell_exports"),
    "place_block": ("block", "place_block"),
    "quote_for_shell": ("shell", "quote"),
    "remove_block": ("block", "remove_block"),
    "render_text": ("formats", "render_text"),
    "schema_name": ("ids", "schema_name"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value
