"""What an agent's hook says, and from where it was called."""

from __future__ import annotations

from corral.model.tuples import NamedTuple


class Payload(NamedTuple):
    """What a hook was told, checked.

    `event`: the agent's own word, "SessionStart" or "SessionEnd" or another. `directory`: an
    absolute path, which need not be there any more. `why`: the start's source or the end's reason.
    """

    event: str
    session: str
    directory: str
    why: str


class Caller(NamedTuple):
    """The chain of processes that a hook was called through.

    `above`: (pid, start ticks) of its ancestors, nearest first. `agent_pid`: what the agent's own
    variable says its process id is; 0 where there is no such variable.
    """

    above: tuple[tuple[int, int], ...]
    boot_id: str
    pid_namespace: int
    agent_pid: int = 0


class Heard(NamedTuple):
    """A call of a hook as it was written down at once, to be understood later.

    `at`: unix seconds. `content`: the bytes of its payload, whatever they are.
    """

    agent: str
    at: float
    content: bytes
    caller: Caller
