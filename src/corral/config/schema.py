"""Every key: what it holds, what is expected of it, and what it means.

Reading, `corral config` and the reference page are all made from this one table.
"""

from __future__ import annotations

from corral.config import checks
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.config.checks import Check


class Rule(NamedTuple):
    """One key. A `*` in `key` stands for a name that the user chooses.

    `form` is text, integer, number or list: how the value is written in a variable. `default` is
    the default as one would write it in TOML, "" for none.
    """

    key: str
    form: str
    default: str
    expected: str
    meaning: str
    check: Check


_INSIDE = "a relative path below the project's directory"
_PORT = "an integer from 1 to 65535"

RULES: tuple[Rule, ...] = (
    Rule(
        "namespace",
        "text",
        '"corral"',
        "a word of a-z, 0-9 and single '-', a letter first, at most 20 characters",
        "The prefix of labels (`corral.owner`) and of names (`corral-...`).",
        checks.namespace,
    ),
    Rule(
        "pool.first",
        "integer",
        "22000",
        _PORT,
        "The lowest port that worktrees are dealt; at least 1024.",
        checks.port,
    ),
    Rule(
        "pool.last",
        "integer",
        "31999",
        _PORT,
        "The highest port that worktrees are dealt; keep it below the kernel's ephemeral range.",
        checks.port,
    ),
    Rule(
        "ports.*.preferred",
        "integer",
        "",
        _PORT,
        "The port in the main checkout, if it is free; other worktrees get one from the pool. "
        "`NAME = 3000` is short for `NAME = { preferred = 3000 }`.",
        checks.port,
    ),
    Rule(
        "ports.*.env",
        "text",
        "",
        "the name of an environment variable, not beginning with CORRAL_, that steers no program",
        "The variable that carries the port; without it `<NAME>_PORT`.",
        checks.variable,
    ),
    Rule(
        "ports.*.handoff",
        "text",
        '"hold"',
        '"hold", "fd" or "release"',
        "How `corral run` hands the held port to the server.",
        checks.one_of("hold", "fd", "release"),
    ),
    Rule(
        "ports.*.protocol",
        "text",
        '"tcp"',
        '"tcp" or "udp"',
        "What listens on the port.",
        checks.one_of("tcp", "udp"),
    ),
    Rule(
        "database.isolation",
        "text",
        '"none"',
        '"none", "schema", "database", "file" or "container"',
        "What each environment gets of its own: a PostgreSQL schema or database, an SQLite file, "
        "a PostgreSQL container, or nothing.",
        checks.one_of("none", "schema", "database", "file", "container"),
    ),
    Rule(
        "database.url",
        "text",
        "",
        "a URL in text",
        "The server to use; the database that it names is never copied or touched.",
        checks.filled,
    ),
    Rule(
        "database.seed",
        "text",
        "",
        "a path in text",
        'The SQLite file that `isolation = "file"` clones; looked for in the worktree, then in '
        "the main checkout.",
        checks.filled,
    ),
    Rule(
        "database.template.migrate",
        "text",
        "",
        "a command in text",
        "The command that fills a template database; runs only once it was trusted.",
        checks.filled,
    ),
    Rule(
        "database.template.inputs",
        "list",
        "[]",
        "a list of patterns",
        "The files that the template depends on; when one changes, the template is made anew.",
        checks.many(checks.inside),
    ),
    Rule(
        "compose.files",
        "list",
        "",
        f"a list, each item {_INSIDE}",
        "The compose files of the project; without it the file that compose itself would find. "
        "`[]` turns compose off.",
        checks.many(checks.inside),
    ),
    Rule(
        "vars.*",
        "text",
        "",
        "text, in quotes",
        "A variable of every format and process. `${ports.NAME}`, `${database.url}`, `${address}`, "
        "`${env.id}` and the like are filled in; `$${` is a literal `${`. Names that steer "
        "programs (`PATH`, `HOME`, `LD_*`, `GIT_*`, `NODE_OPTIONS` and their like) are refused.",
        checks.text,
    ),
    Rule(
        "files.link",
        "list",
        "[]",
        f"a list, each item {_INSIDE}",
        "What a worktree links to in the main checkout.",
        checks.many(checks.inside),
    ),
    Rule(
        "files.copy",
        "list",
        "[]",
        f"a list, each item {_INSIDE}",
        "What a worktree gets a copy of from the main checkout, with its permissions.",
        checks.many(checks.inside),
    ),
    Rule(
        "setup.after_up",
        "list",
        "[]",
        "a list of commands",
        "Commands that `corral up` runs at the end; only once they were trusted.",
        checks.many(checks.filled),
    ),
    Rule(
        "outputs.dotenv",
        "text",
        '".env.local"',
        f"{_INSIDE}, or empty text",
        "The dotenv file that `corral up` keeps its block in; empty for none.",
        checks.inside_or_none,
    ),
    Rule(
        "keeper.reap",
        "text",
        '"auto"',
        '"auto", "report" or "off"',
        "What the keeper (not built yet) does after an anchor died: reap, report, or nothing.",
        checks.one_of("auto", "report", "off"),
    ),
    Rule(
        "keeper.grace",
        "number",
        "30",
        'seconds from 0 up, or a span such as "90s" or "5m"',
        "How long after its anchor's death an owner is left alone.",
        checks.seconds,
    ),
    Rule(
        "protect.programs",
        "list",
        "[]",
        "a list of names of programs",
        "Programs that are never stopped, nor what runs below them, whatever they carry.",
        checks.many(checks.filled),
    ),
)

BY_KEY: dict[str, Rule] = {rule.key: rule for rule in RULES}
SECTIONS: tuple[str, ...] = tuple(
    dict.fromkeys(rule.key.partition(".")[0] for rule in RULES if "." in rule.key)
)


def rule_of(key: str) -> Rule | None:
    """The rule of a key with its names filled in, such as `ports.web.env`; None for no key."""
    section, _, rest = key.partition(".")
    if section == "vars" and rest:
        return BY_KEY["vars.*"]
    if section == "ports":
        return BY_KEY.get(f"ports.*.{rest.rpartition('.')[2]}")
    return BY_KEY.get(key)


def keys_below(prefix: str) -> tuple[str, ...]:
    """The words that may stand directly below `prefix` ("" for the top)."""
    start = f"{prefix}." if prefix else ""
    found = (rule.key.removeprefix(start) for rule in RULES if rule.key.startswith(start))
    return tuple(dict.fromkeys(word.partition(".")[0] for word in found))
