"""The `corral` command: find the command's module, parse, call, show, exit.

Only the module of the command that was asked for is imported, so that quick commands stay quick.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# command -> (module in corral.cli, one line of help); the order is the order of the help text.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("up", "claim, provision and write files; idempotent"),
    "env": ("env", "print the environment's variables"),
    "url": ("url", "print the URL of a service"),
    "run": ("run", "run a command as this worker's own"),
    "stop": ("stop", "stop a named service"),
    "logs": ("logs", "show a named service's log"),
    "status": ("status", "what is owned, shared, orphaned or unknown"),
    "reap": ("reap", "take down what this owner owns"),
    "teardown": ("reap", "the same as reap"),
    "cleanup": ("cleanup", "take down orphans: preview, ask, look again, act"),
    "down": ("down", "give the environment up"),
    "adopt": ("adopt", "make a running resource this owner's"),
    "keep": ("keep", "never take this resource down"),
    "unkeep": ("keep", "undo keep"),
    "port": ("port", "claim, release and list ports"),
    "db": ("db", "create, reset, drop and list databases"),
    "lock": ("lock", "run a command while nobody else holds this lock"),
    "locks": ("locks", "every lock that is held, by whom and since when"),
    "session": ("session", "start, end and list sessions"),
    "events": ("events", "the journal of what was removed, and on which proof"),
    "config": ("config", "every setting with its source"),
    "trust": ("trust", "trust the commands of this repository's file"),
    "install": ("install", "hooks and a skill for an agent, or a hook of git"),
    "uninstall": ("install", "take exactly that out again"),
    "doctor": ("doctor", "what this machine offers, and what follows"),
    "demo": ("demo", "two worktrees side by side, from up to nothing left"),
}


# These wait, supervise or fork, so they keep the collector and end like any other program.
_LONG = frozenset({"run", "lock", "logs", "demo"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (the design's table: 0 to 4)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--version"]:
        from corral._version import __version__

        sys.stdout.write(f"corral {__version__}\n")
        return 0
    from corral.cli.dispatch import dispatch

    return dispatch(words, COMMANDS)


def console() -> int:
    """The installed command: `main`, and a quick end for commands that do not go on for long."""
    from corral.cli.standard import ensure_open

    ensure_open()
    if not _LONG.isdisjoint(sys.argv[1:]):
        return _told()
    from corral.cli.quick import live_quickly

    return live_quickly(_told)


def _told() -> int:
    """`main`, where an answer that cannot be written is said instead of thrown."""
    try:
        return main()
    except BrokenPipeError:
        # The reader of stdout went away (as `head` does); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as error:
        # A full disk behind stdout; what was to be done is done.
        sys.stderr.write(f"corral: the answer cannot be written: {error.strerror}\n")
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost edge: a person gets words
        from corral.cli.fault import report_fault

        return report_fault(error)


if __name__ == "__main__":
    sys.exit(console())
