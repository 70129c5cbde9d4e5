"""A file for direnv: the same exports as for a shell, for `source_env_if_exists FILE`.

direnv runs the file in bash and hands on what changed, except names that it keeps for itself.
"""

from __future__ import annotations

from corral.render.shell import exports as shell_exports
from corral.render.variables import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.variables import Variables

# direnv never exports these (its list of ignored keys), nor what begins with its own prefix.
_IGNORED = frozenset({"OLDPWD", "PS1", "PWD", "SHELL"})


def exports(variables: Variables) -> str:
    """One `export` line per variable."""
    for name, _value in variables:
        if name in _IGNORED or name.startswith("DIRENV_"):
            raise refused(name, "direnv keeps this name for itself", "choose another name")
    return shell_exports(variables)
