"""Write the pages of the reference that follow from the source; `--check` only compares.

Run by `make docs`. A test runs `--check`, so a page can never say something else than the code.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import corral
from corral import errors
from corral.cli.dispatch import parser_for
from corral.cli.main import COMMANDS
from corral.config.schema import RULES, SECTIONS
from corral.config.variables import variable_of
from corral.decide.programs import CATEGORIES
from corral.decide.workers import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corral.config.schema import Rule

_REFERENCE = Path(__file__).parent / "reference"
_NOTE = "<!-- Written by `make docs` from the source; changes by hand are lost. -->\n\n"


def errors_page() -> str:
    """Every error code with what it means and the exit status of a command that ends with it."""
    for module in pkgutil.walk_packages(corral.__path__, "corral."):
        if not module.name.startswith("corral.demo."):  # programs: importing one would run it
            importlib.import_module(module.name)  # so that every kind of error is known
    rows = [
        f"| `{kind.code}` | {_first_line(kind)} | {kind.exit_status} |"
        for kind in _family(errors.CorralError)
        if kind is not errors.CorralError
    ]
    return f"""# Errors and exit codes

Every error names the thing, the reason and, where there is one, the remedy. With `--json` it is an
entry of `problems`: `code`, `message`, `resource`, `remedy`.

| exit status | meaning | `result` |
|---|---|---|
| 0 | done, or nothing to do | `ok` |
| 1 | something remains | `partial` |
| 2 | usage or configuration | `failed` |
| 3 | could not look; wins over 1 | `partial` |
| 4 | refused: held, foreign or untrusted | `failed` |

| code | meaning | exit status |
|---|---|---|
{chr(10).join(sorted(rows))}

These come beside an answer, whose exit status they do not change, or whose 1 or 3 they explain:

| code | meaning |
|---|---|
{chr(10).join(f"| `{code}` | {meaning} |" for code, meaning in _BESIDE_ANSWERS)}
"""


# Every code that a command's answer, not an error, gives to a problem.
_BESIDE_ANSWERS = (
    ("enumeration-failed", "a backend could not look; nothing of it was judged or removed"),
    ("internal", "a fault of corral itself, with what to report; the exit status is 2"),
    ("left", "a file that corral wrote was left, with the reason (`down`)"),
    ("missing-directory", "a worktree is not there though git lists it (`status`, `cleanup`)"),
    ("registry", "what was done could not be written down"),
    ("remaining", "something could not be taken down, with the reason"),
    ("setup-failed", "a command of `[setup]` failed; the rest of the environment is up"),
    ("stays", "the environment stays, for something of it is left (`down`)"),
)


def configuration_page() -> str:
    """Every key of the configuration, from the table that reading it uses."""
    sections = []
    for section in ("", *SECTIONS):
        rows = [_key_row(rule) for rule in RULES if _section_of(rule) == section]
        title = f"[{section}]" if section else "At the top"
        sections.append(f"## {title}\n\n{_KEY_HEAD}{''.join(rows)}")
    return f"""# Configuration

{_CONFIGURATION}
{chr(10).join(sections)}"""


_KEY_HEAD = "| key | default | expected | variable |\n|---|---|---|---|\n"
_CONFIGURATION = """Every setting can stand in several places. The first that has it wins:

1. a flag of the command (`--db`, `--port`),
2. a variable, `CORRAL_<SECTION>_<KEY>`,
3. `corral.local.toml` at the top of the worktree, which git does not show,
4. the repository's `corral.toml`, or `[tool.corral]` in its `pyproject.toml` (not both),
5. the user's `$XDG_CONFIG_HOME/corral/corral.toml` (`~/.config/corral/corral.toml`),
6. the default.

This is decided key by key; a list is replaced as a whole. Outside git the nearest `corral.toml`
upwards is the project's. [`corral config`](commands/config.md) shows every value with its source.

An unknown key, a wrong type and a value that cannot be are errors (exit 2) that name the file or
variable, the key and what was expected; so is a variable of a known section with an unknown key.

A variable's value is written as in TOML, but text needs no quotes. A list is a TOML array
(`CORRAL_FILES_LINK='["a", "b"]'`); anything else is one item. `CORRAL_PORTS_<NAME>` sets the
preferred number of a port, `CORRAL_VARS_<NAME>` a variable of `[vars]`. These are no settings:
`CORRAL_STATE_DIR`, `CORRAL_SESSION`, `CORRAL_OWNER`, `CORRAL_KEEP`, `CORRAL_FENCE`.

In `[vars]`, `${...}` is filled in: `ports.NAME`, `address` (127.0.0.1 where the environment has
none of its own), `database.url`, `database.name`, `compose.project`, `env.id`, `env.path`,
`env.name`, `env.repository`, `env.main` (the main checkout). `$${` is a literal `${`.
"""


def _section_of(rule: Rule) -> str:
    section, dot, _ = rule.key.partition(".")
    return section if dot else ""


def _key_row(rule: Rule) -> str:
    variable = variable_of(rule.key.replace(".*.preferred", ".*")).replace("*", "<NAME>")
    settable = rule.key.count("*") == 0 or rule.key in {"ports.*.preferred", "vars.*"}
    key = rule.key.replace("*", "NAME")
    cells = (
        f"`{key}`<br>{rule.meaning}",
        f"`{rule.default}`" if rule.default else "",
        rule.expected,
        f"`{variable}`" if settable else "",
    )
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |\n"


def commands_page() -> str:
    """Every command with its arguments, as its own parser knows them."""
    sections = [
        _command_section(name, module, summary)
        for name, (module, summary) in COMMANDS.items()
        if importlib.util.find_spec(f"corral.cli.{module}") is not None
    ]
    return f"""# Commands

`--env DIR` acts for the environment of another directory than the current one; `--json` prints one
JSON document. Data is on stdout, words are on stderr. Unknown arguments are errors. `--help` shows
an example and the exit statuses.

In a terminal tables have headings, their last column is wrapped to its width, and headings are bold
unless `NO_COLOR` is set; what is piped is plain lines, one for each row.

{(chr(10) * 2).join(sections)}"""


def _command_section(name: str, module: str, summary: str) -> str:
    parser = parser_for(name, module, summary)
    text = f"## corral {name}\n\n{_sentence(summary)}\n\n{_arguments(parser, name)}"
    if (_REFERENCE / "commands" / f"{name}.md").exists():
        text += f"[What it does, its data and exit codes](commands/{name}.md)\n"
    return text.rstrip("\n")


def _arguments(parser: argparse.ArgumentParser, name: str) -> str:
    """A table of a parser's arguments, then a section for each of its subcommands."""
    rows, below = [], ""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for word, child in action.choices.items():
                below += f"### corral {name} {word}\n\n{_arguments(child, f'{name} {word}')}"
        elif not {"--help", "--env", "--json"} & set(action.option_strings):
            rows.append(f"| {_spelling(action)} | {_escaped(action.help or '')} |\n")
    table = "| argument | meaning |\n|---|---|\n" + "".join(rows) + "\n" if rows else ""
    return table + below


def _spelling(action: argparse.Action) -> str:
    """How an argument is written: `--name NAME`, `CMD...`."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None and action.metavar is None:
        metavar = "|".join(str(choice) for choice in action.choices)
    value = "" if action.nargs == 0 else metavar
    if action.nargs in {"*", "+", argparse.REMAINDER}:
        value += "..."
    words = [f"{option} {value}".strip() for option in action.option_strings] or [value]
    return ", ".join(f"`{_escaped(word)}`" for word in words)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("%%", "%")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# The public names by what they are for, in the order in which a reader meets them.
_GROUPS = (
    (
        "Environments",
        "What the command line does, for a program: claims, variables, commands, teardown.",
        ("Environment",),
    ),
    (
        "Cleanup in two steps",
        "`prepare_cleanup` looks and changes nothing; `cleanup` acts on what it showed.",
        ("prepare_cleanup", "cleanup", "lifecycle_lock"),
    ),
    (
        "Ports of a process",
        "Claims whose holder is a process: reclaimed once that is proven dead, and never before.",
        (
            "allocate_ephemeral_port",
            "allocate_port_run",
            "EphemeralPort",
            "PortRun",
            "record_allocation",
            "release_allocation",
            "list_allocations",
            "reap_stale_allocations",
            "Allocation",
        ),
    ),
    (
        "One driver per release",
        "A lock that the kernel holds: a dead driver frees it at once.",
        (
            "acquire_conductor_mutex",
            "release_conductor_mutex",
            "canonicalize_release_id",
            "HeldLock",
        ),
    ),
    (
        "The environment as text, without any state",
        "Pure functions of an id: nothing is read, claimed or started.",
        (
            "EnvIsolationSpec",
            "DbIsolation",
            "OutputFormat",
            "generate_env_config",
            "generate_dotenv",
            "generate_shell_exports",
            "generate_docker_compose_override",
            "assign_port",
            "schema_name",
            "container_name",
        ),
    ),
    (
        "What the calls return",
        "Values with named fields, each under the module that has it.",
        (
            "model.report.Plan",
            "model.report.Report",
            "services.status.Status",
            "model.resource.Judgement",
            "model.resource.Sighting",
            "model.resource.BackendReport",
            "services.starting.Result",
            "kernel.sockets.HeldPort",
            "model.process.ProcessIdentity",
            "model.process.Presence",
        ),
    ),
    (
        "Errors",
        "Every error is a `CorralError` with `code`, `message`, `resource` and `remedy`.",
        ("CorralError", "EnumerationError", "ForeignError", "HeldError", "InvalidValueError"),
    ),
)


def api_page() -> str:
    """Every public name with its signature and what its docstring says."""
    grouped = {name for _, _, names in _GROUPS for name in names}
    missing = set(corral.__all__) - grouped - {"__version__"}
    if missing:
        raise SystemExit(f"in no group of the API page: {', '.join(sorted(missing))}")
    sections = [
        f"## {title}\n\n{words}\n\n" + "\n\n".join(_entry(name) for name in names)
        for title, words, names in _GROUPS
    ]
    return f"""# Python API

`import corral` costs next to nothing; each name is loaded when it is first used. Everything is
typed (`py.typed`). What works on a registry works on the user's own: `CORRAL_STATE_DIR`, else the
XDG state directory. The fixtures for tests are on [a page of their own](../how-to/pytest.md).

{(chr(10) * 2).join(sections)}
"""


def _entry(name: str) -> str:
    module, _, attribute = f"corral.{name}".rpartition(".")
    value = getattr(importlib.import_module(module), attribute)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        members = [_member(f"{name}.{m}", f) for m, f in _public_members(type(value))]
        return f"### corral.{name}\n\n{_said(type(value))}\n\n" + "\n\n".join(members)
    if inspect.isfunction(value):
        return _member(name, value).replace("#### ", "### corral.", 1)
    members = [_member(f"{attribute}.{m}", f) for m, f in _public_members(value)]
    text = f"### corral.{name}\n\n{_fields(value)}{_said(value)}"
    return "\n\n".join([text, *members])


def _fields(kind: type) -> str:
    """A value's fields with their types, an enumeration's values, or "" for any other class."""
    if issubclass(kind, Enum):
        return f"Values: {', '.join(f'`{member.value}`' for member in kind)}\n\n"
    names = getattr(kind, "_fields", None) or tuple(getattr(kind, "__dataclass_fields__", ()))
    if not names:
        return ""
    return "Fields: " + ", ".join(f"`{name}: {_of_field(kind, name)}`" for name in names) + "\n\n"


def _of_field(kind: type, name: str) -> str:
    """A field's type, and its default where it has one."""
    said = str(getattr(kind, "__annotations__", {}).get(name))
    if hasattr(kind, "_field_defaults"):
        default = kind._field_defaults.get(name, inspect.Parameter.empty)
    else:
        default = inspect.signature(kind).parameters[name].default
    value = default.value if isinstance(default, Enum) else default
    return f"{said} = {value!r}" if isinstance(value, str | int | float | None) else said


def _public_members(kind: type) -> list[tuple[str, object]]:
    return [
        (name, member)
        for name, member in vars(kind).items()
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property | classmethod | staticmethod))
        and inspect.getdoc(member)
        and not issubclass(kind, Enum)
    ]


def _member(name: str, member: object) -> str:
    if isinstance(member, property):
        return f"#### {name}\n\n{_said(member)}"
    function = getattr(member, "__func__", member)
    if not callable(function):
        raise TypeError(f"{name} is neither a function nor a property")
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    signature = re.sub(r"\((self|cls)(, )?", "(", signature)
    return f"#### {name}\n\n```python\n{name.rpartition('.')[2]}{signature}\n```\n\n{_said(member)}"


def _said(thing: object) -> str:
    """A docstring as Markdown: indented examples become code."""
    text = inspect.getdoc(thing) or ""
    return re.sub(r"(?:^    .*\n?(?:\n(?=    ))?)+", _as_code, text, flags=re.MULTILINE)


def _as_code(found: re.Match[str]) -> str:
    return f"```python\n{inspect.cleandoc(found[0])}\n```\n"


def owners_page() -> str:
    """Which owner a command acts for, from the table of known agents and CI systems."""
    ids = [
        f"| {worker.name} | {' + '.join(f'`{name}`' for name in worker.session)} "
        f"| {f'`{worker.pid}`' if worker.pid else ''} |\n"
        for worker in WORKERS
        if worker.session
    ]
    programs = [
        f"| {worker.name} | {_listed((*worker.programs, *worker.paths))} |\n"
        for worker in WORKERS
        if worker.programs or worker.paths
    ]
    return f"""# Owners and protected programs

## Whose a command is

The first of these that is there decides which owner a command acts for:

1. `--session ID`,
2. `CORRAL_SESSION`, which you set and corral never does,
3. the id that an agent or a CI system gave to its children (the table below),
4. the worktree's own owner: a person in a terminal. It has no anchor and is never reaped by itself.

An inherited id counts only for who really stands below that agent: where its owner has an anchor, a
person in a terminal that an agent once opened acts for the worktree. Of several ids the one of the
nearest worker above the caller counts. A hook takes the id from its event only.

| worker | the session is named by | its own process |
|---|---|---|
{"".join(ids)}
Where several variables are joined by +, all of them together name the session.

## What ends an owner

The process whose death ends a session is its anchor: the process that the variable of the last
column names, if it is an ancestor of the caller; else the nearest ancestor that is one of these
programs (or a script below such a path); else what `corral session start --anchor PID` names; else
there is none. Never a shell or a terminal by guess.

| worker | programs, parts of a script's path |
|---|---|
{"".join(programs)}
## Programs that are only ever shown

These, and everything that runs below them, are never signalled, whatever marks they carry. Many
are known by their arguments as well (`ssh` with a forwarding, a virtual machine of Colima's, a
daemon of Gradle's under `java`, a browser unless it is `--headless`). `[protect] programs` adds
names.

{_protected_rows()}"""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _protected_rows() -> str:
    kinds: dict[str, list[str]] = {}
    for name, kind in sorted(CATEGORIES.items()):
        kinds.setdefault(kind, []).append(name)
    rows = [f"| {kind} | {_listed(names)} |\n" for kind, names in sorted(kinds.items())]
    return f"| kind | programs |\n|---|---|\n{''.join(rows)}"


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "configuration.md": configuration_page,
    "errors.md": errors_page,
    "owners.md": owners_page,
    "python-api.md": api_page,
}


def _family(kind: type[errors.CorralError]) -> list[type[errors.CorralError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _family(child))]


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0].rstrip(".")


def main() -> int:
    """Write or compare every page; 1 if one is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    options = parser.parse_args()
    stale = 0
    for name, page in PAGES.items():
        path, text = _REFERENCE / name, _NOTE + page().rstrip("\n") + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if options.check:
            print(f"{path} is out of date: make docs", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
