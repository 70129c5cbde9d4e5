"""Ports for a project whose configuration names none: guessed from its own files, and said.

No command is ever guessed.
"""

from __future__ import annotations

import os

from corral.config.checks import WrongValueError, name
from corral.config.files import read_bytes
from corral.config.settings import PortWish
from corral.decide.inferring import from_env_example, from_package_json, from_procfile, merged
from corral.errors import ConfigurationError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corral.decide.inferring import Guess

_EXAMPLES = (".env.example", ".env.sample", ".env.template")


class Inferred(NamedTuple):
    """The wishes that follow from the project's files, and the words that say so."""

    ports: tuple[PortWish, ...]
    words: tuple[str, ...]


def infer(root: str, published: Iterable[Guess] = ()) -> Inferred:
    """What the files at `root` speak of; `published` are the ports that its compose files publish.

    A file that cannot be understood is said and passed over.
    """
    words: list[str] = []
    guesses = merged([*published, *_from_files(root, words)])
    wishes, said = [], []
    taken: set[str] = set()
    for guess in guesses:
        wish = _wish(guess)
        if wish is None or wish.variable in taken:
            words.append(f"{guess.source}: {guess.name!r} cannot name a port; name it in [ports]")
            continue
        taken.add(wish.variable)
        wishes.append(wish)
        number = f"={wish.preferred}" if wish.preferred else ""
        said.append(f"{wish.name}{number} ({guess.source})")
    if said:
        words.insert(0, f"inferred ports: {', '.join(said)}")
    return Inferred(tuple(wishes), tuple(words))


def _wish(guess: Guess) -> PortWish | None:
    try:
        return PortWish(name(guess.name.replace(".", "-")), guess.preferred)
    except WrongValueError:
        return None


def _from_files(root: str, words: list[str]) -> Iterator[Guess]:
    text = _text(root, "Procfile", words)
    if text is not None:
        yield from from_procfile(text)
    text = _text(root, "package.json", words)
    if text is not None:
        try:
            yield from from_package_json(text)
        except (ValueError, RecursionError):
            words.append("package.json is no JSON object, so no port was inferred from it")
    for example in _EXAMPLES:
        text = _text(root, example, words)
        if text is not None:
            yield from from_env_example(text, example)


def _text(root: str, file: str, words: list[str]) -> str | None:
    try:
        content = read_bytes(os.path.join(root, file))
    except ConfigurationError as error:
        words.append(f"{error.message}, so no port was inferred from it")
        return None
    return None if content is None else content.decode("utf-8", "replace")
