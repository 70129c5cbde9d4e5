"""What `corral COMMAND --help` says beyond its arguments: what it does, an example, exit statuses.

Imported only when help is asked for.
"""

from __future__ import annotations

from textwrap import fill

from corral.model.tuples import NamedTuple


class Guide(NamedTuple):
    """`about`: what a user expects of the command; `examples`: as typed; `statuses`: in words."""

    about: str
    examples: tuple[str, ...]
    statuses: str


_REAP = Guide(
    "Takes down what the acting owner started: the session that --session, CORRAL_SESSION "
    "or the agent names, else this worktree's own. Claims, files and data stay (corral "
    "down takes them).",
    ("corral reap --dry-run", "corral reap --session agent-7"),
    "0 done or nothing to do, 1 something remains, 3 a backend could not look, 4 it lives "
    "elsewhere",
)

GUIDES: dict[str, Guide] = {
    "up": Guide(
        "Gives this worktree ports, names and a database of its own, and writes them to "
        ".env.local. What corral.toml does not say is inferred from the project. Run it again "
        "at any time: what is there is kept.",
        ("corral up", "corral up --port web=3000 --db file"),
        "0 it is up, 1 a command of [setup] failed, 2 wrong arguments or configuration, 4 "
        "commands that nobody trusted, or no free port",
    ),
    "env": Guide(
        "Prints the variables of this worktree's environment, or keeps them in a file.",
        ('eval "$(corral env --format shell)"', "corral env --output .env.test"),
        "0 printed or written, 2 no environment or a value that the format cannot carry, 4 "
        "the file is the user's",
    ),
    "url": Guide(
        "Prints where a port of this environment is reached.",
        ("corral url web", "curl $(corral url web)"),
        "0 printed, 2 no environment, no such port, or several and none named",
    ),
    "run": Guide(
        "Runs a command with the environment's variables, and records it before it runs, so "
        "that nothing it starts is lost. The configured ports are claimed if they are not "
        "yet.",
        (
            "corral run -- pytest",
            "corral run --detach --name web --wait-ready 30 -- npm run dev",
            "corral run --port api -- python3 -m http.server {port} --bind {host}",
        ),
        "that of CMD; 127 not found, 126 cannot be executed; 1 it never became ready, 2 wrong "
        "arguments, 4 a port is somebody else's",
    ),
    "stop": Guide(
        "Takes down one named service, with all that it started, and says so once it is gone.",
        ("corral stop web",),
        "0 it does not run (any more), 1 something remains, 2 no such name, 4 another worker's",
    ),
    "logs": Guide(
        "Shows what a service that was started with --detach wrote; a foreground run has no log.",
        ("corral logs web", "corral logs -f web"),
        "0 shown, 2 no such name, or it has no log",
    ),
    "status": Guide(
        "Shows what this owner and this environment have, what is shared, orphaned or "
        "unknown. Changes nothing.",
        ("corral status", "corral status --all --explain"),
        "0 shown, 3 a backend could not look",
    ),
    "reap": _REAP,
    "teardown": _REAP._replace(examples=("corral teardown --dry-run",)),
    "cleanup": Guide(
        "Takes down orphans: what carries corral's mark and whose worker or worktree is "
        "proven over. Shows them, asks, looks again, and removes only what was shown and is "
        "still the same.",
        ("corral cleanup --dry-run", "corral cleanup --yes --older-than 1h"),
        "0 done, nothing to do or only shown, 1 something remains, 3 a backend could not look",
    ),
    "down": Guide(
        "Gives this worktree's environment up: its processes, containers, files, claims and data.",
        ("corral down", "corral down --keep-data"),
        "0 done or nothing to do, 1 something remains, 3 a backend could not look, 4 another "
        "owner lives there",
    ),
    "adopt": Guide(
        "Makes something that was started without corral this owner's, so that reap takes it down.",
        ("corral adopt process 4711 --name worker", "corral adopt container web-1"),
        "0 adopted, 2 nothing of that kind and id, 3 could not look, 4 it must not be adopted",
    ),
    "keep": Guide(
        "Keeps one resource from ever being taken down, until corral unkeep.",
        ("corral keep process/4711", "corral keep web"),
        "0 kept, 2 nothing or several of that name",
    ),
    "unkeep": Guide(
        "Lets a resource that was kept be taken down again.",
        ("corral unkeep process/4711",),
        "0 done, 2 nothing or several of that name",
    ),
    "port": Guide(
        "Claims, releases or lists single ports, for this environment or for one process.",
        (
            "corral port claim api",
            "corral port claim worker --count 4",
            "corral port release api",
            "corral port list --all",
        ),
        "0 done, 2 wrong arguments or no such claim, 4 no port is free, or it is another's",
    ),
    "db": Guide(
        "Makes, resets, drops or shows this environment's own database. In a terminal reset "
        "and drop ask first, since data goes.",
        ("corral db create --db file", "corral db reset --yes", "corral db url"),
        "0 done, 2 no database or none configured, 4 not corral's",
    ),
    "lock": Guide(
        "Lets one driver at a time run a command: for all worktrees of this clone, or the machine.",
        ("corral lock v1.4 -- ./release.sh", "corral lock deploy --wait 5m -- make deploy"),
        "that of CMD; 126, 127 as in a shell; 2 wrong arguments, 4 somebody else holds the lock",
    ),
    "locks": Guide(
        "Shows every lock that is held now, by whom and since when.",
        ("corral locks",),
        "0 shown",
    ),
    "session": Guide(
        "start opens a session, whose end takes down what was started in it; end ends it; "
        "list shows those that live or ended lately. Agents with corral's hooks do this by "
        "themselves.",
        (
            'eval "$(corral session start --session fix-42)"',
            "corral session start --anchor $PPID",
            "corral session end --session fix-42",
            "corral session list --all",
        ),
        "0 done, 1 something remains, 2 no such session or process, 4 it lives elsewhere",
    ),
    "events": Guide(
        "Shows the journal: what was removed, when, by which command and on which proof.",
        ("corral events --since 1h",),
        "0 shown, 2 a wrong age",
    ),
    "config": Guide(
        "Shows every setting that is in force here, and which file, variable or default it is "
        "from.",
        ("corral config", "corral config ports"),
        "0 shown, 2 the configuration is wrong, or there is no such key",
    ),
    "trust": Guide(
        "Lets the commands that this project's files bring (after_up, migrate) run. Trust is "
        "for this repository and exactly this configuration: any change of those files asks "
        "again.",
        ("corral trust --check", "corral trust"),
        "0 trusted or nothing needs it, 2 the configuration is wrong, 4 --check, and it is not",
    ),
    "doctor": Guide(
        "Shows what corral rests on here, what is missing, what follows from it and what to do.",
        ("corral doctor",),
        "0 it works, 2 something that corral needs is broken",
    ),
    "install": Guide(
        "Puts corral's hooks and skill where an agent looks for the user's own, or a hook into "
        "this repository that brings new worktrees up. Shows the change; keeps what is there.",
        ("corral install claude --dry-run", "corral install git --yes"),
        "0 installed, there already, or only shown, 2 a file is not what it should be, 4 it "
        "changed since it was shown",
    ),
    "uninstall": Guide(
        "Takes out what install put in, and nothing else.",
        ("corral uninstall claude", "corral uninstall git --yes"),
        "0 taken out, was not there, or only shown, 2 a file is not what it should be, 4 it "
        "changed since it was shown",
    ),
    "demo": Guide(
        "Shows the main job in a temporary directory: two worktrees, a crash, nothing left.",
        ("corral demo",),
        "0 it held, 1 it did not",
    ),
}


def about(command: str, width: int) -> str:
    """What stands above the arguments, "" for a command without a guide."""
    guide = GUIDES.get(command)
    return fill(guide.about, width) if guide is not None else ""


def epilog(command: str, width: int) -> str:
    """Examples and exit statuses, "" for a command without a guide."""
    guide = GUIDES.get(command)
    if guide is None:
        return ""
    examples = "".join(f"  {example}\n" for example in guide.examples)
    statuses = fill(guide.statuses, width, initial_indent="  ", subsequent_indent="  ")
    return f"examples:\n{examples}\nexit status:\n{statuses}"
