"""Which worker of pytest-xdist runs which test: an engine's tests all in one, any other anywhere.

`--dist loadgroup` does not do: it renames tests to pass the group on, which pytest 9.2 ignores.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

_ENGINES = "tests/engines/test_"
# These name their ports, so all of them are run one after the other: the probe of one test would be
# in the way of another's.
_NAMED_PORTS = (
    "tests/cli/test_address.py",
    "tests/cli/test_mistakes.py",
    "tests/cli/test_run_ports.py",
    "tests/cli/test_up.py",
    "tests/system/test_python_api.py",
    "tests/system/test_up_files.py",
    "tests/system/test_up_inference.py",
    "tests/system/test_up_ports.py",
)
# So are these among themselves. Worktrees of one name prefer one port, and each page has a registry
# of its own.
_ALONE = ("tests/system/test_allocations.py", "tests/docs/")


class EngineScheduling(LoadScopeScheduling):
    """Hands out test by test, but everything in `tests/engines/test_<engine>*.py` together.

    Each engine is so started by one worker only, and two of a kind never fight over iptables.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_NAMED_PORTS):
            return "named ports"
        for crowded in _ALONE:
            if nodeid.startswith(crowded):
                return crowded
        _, engines, name = nodeid.rpartition(_ENGINES)
        return name.partition(".py")[0].partition("_")[0] if engines else nodeid
