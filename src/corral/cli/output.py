"""What the command line says: one JSON document or words, and the exit status.

Data goes to stdout, words to stderr. This is the only module that prints.
"""

from __future__ import annotations

import sys

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.errors import CorralError

SCHEMA = "corral/1"
EXIT_OK, EXIT_REMAINS, EXIT_USAGE, EXIT_NO_LOOK, EXIT_REFUSED = 0, 1, 2, 3, 4


class Problem(NamedTuple):
    """One thing that went wrong: a stable code, the words, the resource and what to do."""

    code: str
    message: str
    resource: str | None = None
    remedy: str = ""


class Answer(NamedTuple):
    """What a command returns: data for `--json`, lines for a person, problems, exit status.

    `text` writes the human form of the data to stdout when it is called; `words` go to stderr.
    `result` is the envelope's word where the exit status is another program's. `shown`: the
    answer was given already, by a command that then went on.
    """

    data: dict[str, Any]
    text: Callable[[], str] | None = None
    words: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    status: int = EXIT_OK
    result: str = ""
    shown: bool = False


def result_word(status: int) -> str:
    """The envelope's `result` for an exit status."""
    if status == EXIT_OK:
        return "ok"
    return "partial" if status in {EXIT_REMAINS, EXIT_NO_LOOK} else "failed"


def envelope(command: str, answer: Answer) -> dict[str, Any]:
    """The one JSON document of a command."""
    return {
        "schema": SCHEMA,
        "command": command,
        "result": answer.result or result_word(answer.status),
        "data": answer.data,
        "problems": [problem._asdict() for problem in answer.problems],
    }


def failure(error: CorralError, *, data: dict[str, Any] | None = None) -> Answer:
    """The answer that an error at the edge becomes."""
    problem = Problem(error.code, error.message, error.resource, error.remedy)
    return Answer(data or {}, problems=(problem,), status=error.exit_status)


def show(command: str, answer: Answer, *, as_json: bool) -> int:
    """Print the answer and return its exit status."""
    if answer.shown:
        return answer.status
    if as_json:
        import json

        document = json.dumps(envelope(command, answer), ensure_ascii=True)
        sys.stdout.write(document + "\n")
    elif answer.text is not None:
        sys.stdout.write(answer.text())
    if not as_json:
        for word in answer.words:
            say(word)
        for problem in answer.problems:
            say(_problem_line(problem))
    sys.stdout.flush()
    return answer.status


def _problem_line(problem: Problem) -> str:
    text = f"corral: {problem.message}"
    return f"{text}\n  {problem.remedy}" if problem.remedy else text


def say(text: str) -> None:
    """Words for a person, on stderr; characters that could drive a terminal are made visible."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def show_text(text: str) -> None:
    """A text that was made printable and styled already, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def printable(text: str) -> str:
    """The text with control characters (but newline and tab) and lone surrogates made visible."""
    return "".join(
        c if c in "\n\t" or (c.isprintable() or c == " ") else f"\\x{ord(c):02x}" for c in text
    )
