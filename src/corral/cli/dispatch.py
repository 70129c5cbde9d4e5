"""Parse one command's arguments, call it, and turn what comes back into an exit status."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from corral.cli.output import EXIT_USAGE, Answer, failure, show
from corral.decide.spelling import did_you_mean
from corral.errors import CorralError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

# Nobody ships argparse's words in other languages, and it would search the disk for each of them.
argparse._ = str  # type: ignore[attr-defined]
_INTERRUPTED = 130
_WITH_COMMAND = frozenset({"lock", "run"})  # these take another command behind --
# The options that all commands take, and what else may stand where a command would.
_OF_ALL = frozenset({"--env", "--session", "--json"})
_BEFORE = (*_OF_ALL, "--help", "--version")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal; argparse would import shutil to find that out."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_width())


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns - 2
    except (OSError, ValueError):
        # No terminal, or no stdout at all.
        return 78


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, so that `--json` answers with a document as well."""

    command = ""

    def error(self, message: str) -> NoReturn:
        """Report a wrong use; argparse would print and exit."""
        message = message.replace("invalid int value:", "expected a whole number, not")
        message = message.replace("ignored explicit argument", "takes no value, not")
        start = "unrecognized arguments: "
        remedy = f"see: {self.prog} --help"
        if message.startswith(start):
            word = message.removeprefix(start).split(" ", 1)[0].split("=", 1)[0]
            guess = did_you_mean(word, self._option_string_actions)
            message += guess
            if self.command in _WITH_COMMAND and not guess:
                remedy = f"write -- before the command: {self.prog} ... -- CMD"
        raise UsageError(message, remedy=remedy)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is not one of an argument's few, with the one that was meant."""
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        name = "/".join(action.option_strings) or action.dest.upper()
        raise UsageError(
            f"{name}: {value!r} is not one of {', '.join(known)}{did_you_mean(str(value), known)}",
            remedy=f"see: {self.prog} --help",
        )

    def format_help(self) -> str:
        """The help text, with what the guide knows of the command."""
        from corral.cli import guide

        self.description = guide.about(self.command, _width()) or self.description
        epilog = guide.epilog(self.command, _width())
        self.epilog = "\n\n".join(filter(None, (self.epilog, epilog)))
        return super().format_help()


def parser_for(command: str, module_name: str, summary: str) -> Parser:
    """The complete parser of one command."""
    parser = Parser(
        prog=f"corral {command}",
        description=summary,
        allow_abbrev=False,
        formatter_class=_Formatter,
    )
    parser.command = command
    parser.add_argument("--env", metavar="DIR", help="act for the environment of DIR")
    parser.add_argument("--session", metavar="ID", help="act for this session's owner")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    module = import_module(f"corral.cli.{module_name}")
    module.configure(parser, command)
    return parser


def dispatch(words: Sequence[str], commands: Mapping[str, tuple[str, str]]) -> int:
    """Run the command that `words` name; return its exit status."""
    words = _command_first(words)
    if words[:1] == ["help"] and words[1:2]:
        words = [words[1], "--help"]
    if not words or words[0] in {"-h", "--help", "help"}:
        sys.stdout.write(overview(commands))
        return 0 if words else EXIT_USAGE
    command = words[0]
    as_json = _wants_json(words)
    try:
        if command in _OF_ALL:
            raise UsageError(
                f"no command follows {command}", remedy="corral --help lists the commands"
            )
        if command not in commands:
            what = "option" if command.startswith("-") else "command"
            known = _BEFORE if command.startswith("-") else commands
            raise UsageError(
                f"there is no {what} {command!r}{did_you_mean(command, known)}",
                remedy="corral --help lists the commands",
            )
        module_name, summary = commands[command]
        parser = parser_for(command, module_name, summary)
        arguments = _parsed(parser, _joined(words[1:]))
        answer: Answer = import_module(f"corral.cli.{module_name}").run(arguments)
    except CorralError as error:
        return show(command, failure(error), as_json=as_json)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return show(command, answer, as_json=arguments.json)


def _parsed(parser: Parser, words: list[str]) -> argparse.Namespace:
    """The arguments. A lone `--` as a value is refused, since argparse would drop it.

    What follows `--` is another command's where the parser takes one (`argv`).

    argparse would not find it once an option stands between it and the other arguments.
    """
    for word in words:
        if word.startswith("--") and word.endswith("=--"):
            parser.error(f"argument {word[:-3]}: '--' is no value")
    if parser.get_default("argv") is None or "--" not in words:
        return parser.parse_args(words)
    place = words.index("--")
    arguments = parser.parse_args(words[:place])
    arguments.argv = [*arguments.argv, *words[place + 1 :]]
    return arguments


def _command_first(words: Sequence[str]) -> list[str]:
    """The words with the options that all commands take behind the command, as people write both.

    `corral --env DIR status` is `corral status --env DIR`.
    """
    rest = list(words)
    moved: list[str] = []
    while rest and rest[0].split("=", 1)[0] in _OF_ALL:
        moved.append(rest.pop(0))
        if moved[-1] in {"--env", "--session"} and rest:
            moved.append(rest.pop(0))
    return [*rest[:1], *moved, *rest[1:]] if rest else moved


def _joined(words: Sequence[str]) -> list[str]:
    """The words with `--session ID` as `--session=ID`, so that an id may begin with a dash."""
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*found, word, *rest]
        joins = word == "--session" and rest and not _is_option(rest[0])
        found.append(f"{word}={rest.pop(0)}" if joins else word)
    return found


def _is_option(word: str) -> bool:
    return word.startswith("--") and word[2:3].isalpha()


def _wants_json(words: Sequence[str]) -> bool:
    """Whether `--json` stands among corral's own arguments (those before `--`)."""
    own = words[: words.index("--")] if "--" in words else words
    return "--json" in own


def overview(commands: Mapping[str, tuple[str, str]]) -> str:
    """The help text of `corral` itself."""
    lines = ["usage: corral COMMAND [--env DIR] [--json] ...", ""]
    lines += ["An environment of its own for every parallel worker on this machine.", ""]
    lines += [f"  {name:<10} {summary}" for name, (_, summary) in commands.items()]
    lines += ["", "  --version  print the version", "  --help     print this", ""]
    lines += ["corral COMMAND --help shows what it does, its arguments and an example.", ""]
    return "\n".join(lines)
