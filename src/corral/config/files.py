"""Where the configuration files are, and their content as flat, checked keys."""

from __future__ import annotations

import os
import stat

from corral.config.checks import WrongValueError, name, variable
from corral.config.schema import keys_below, rule_of
from corral.decide.spelling import did_you_mean
from corral.errors import ConfigurationError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

REPOSITORY_FILE, LOCAL_FILE, PYPROJECT = "corral.toml", "corral.local.toml", "pyproject.toml"
_LIMIT = 1_048_576  # bytes; a larger file is no configuration
_SHOWN = 80  # characters of a wrong value in a message
# What reading takes grows with the square of the dots in a line and in a table's header.
_DOTS_SQUARED, _HEADER_DOTS = 10_000_000, 64


class Document(NamedTuple):
    """One file: `values` by flat key, each checked; `content` is what trust is pinned to."""

    path: str
    values: dict[str, Any]
    content: bytes


def read_bytes(path: str, limit: int = _LIMIT) -> bytes | None:
    """The content of a regular file of at most `limit` bytes, None if there is none.

    Raises ConfigurationError if it is anything else or cannot be read.
    """
    try:
        # not blocking: a named pipe in that place must not hold corral up
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", resource=path, remedy="make it readable"
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise ConfigurationError(
                f"{path} is not read: expected a regular file of at most {limit >> 10} KiB",
                resource=path,
                remedy="move it away",
            )
        return _read_all(descriptor)
    finally:
        os.close(descriptor)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 65536):
        parts.append(part)
    return b"".join(parts)


def project_documents(root: str) -> tuple[Document, ...]:
    """The repository's file and the worktree-local one, those that exist, in this order.

    Raises ConfigurationError when both `corral.toml` and `[tool.corral]` are there.
    """
    path, pyproject = os.path.join(root, REPOSITORY_FILE), os.path.join(root, PYPROJECT)
    found = document(path)
    table = _pyproject(pyproject)
    if found and table:
        raise ConfigurationError(
            f"both {path} and [tool.corral] in {pyproject} configure corral",
            resource=path,
            remedy="keep one of the two",
        )
    local = document(os.path.join(root, LOCAL_FILE))
    return tuple(each for each in (found or table, local) if each is not None)


def document(path: str) -> Document | None:
    """A configuration file; None if it is not there."""
    content = read_bytes(path)
    if content is None:
        return None
    return Document(path, dict(_flat(_parse(path, content), path)), content)


def _pyproject(path: str) -> Document | None:
    content = read_bytes(path)
    # TOML is parsed only where the word occurs: most projects' files are not about corral
    if content is None or b"corral" not in content:
        return None
    tool = _parse(path, content).get("tool", {})
    if not isinstance(tool, dict) or "corral" not in tool:
        return None
    table = _table(tool["corral"], "tool.corral", path)
    import json

    # the rest of the file changes often and is not corral's business
    canonical = json.dumps(table, sort_keys=True, default=str).encode()
    return Document(path, dict(_flat(table, path)), canonical)


def _parse(path: str, content: bytes) -> dict[str, Any]:
    import tomllib

    if _is_endless(content):
        raise _too_deep(path)
    try:
        found = tomllib.loads(content.decode("utf-8"))
        repr(found)  # as deep as a message about it would have to go
    except RecursionError as error:
        raise _too_deep(path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} is not valid TOML: {error}", resource=path, remedy="correct the file"
        ) from error
    return found


def _too_deep(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is nested too deep", resource=path, remedy="correct the file"
    )


def _is_endless(content: bytes) -> bool:
    """Whether reading would take very long for what it holds: keys of thousands of parts."""
    lines = content.splitlines()
    return sum(line.count(b".") ** 2 for line in lines) > _DOTS_SQUARED or any(
        line.count(b".") > _HEADER_DOTS for line in lines if line.lstrip().startswith(b"[")
    )


def _flat(table: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """Every key of a document with its checked value."""
    for word, value in table.items():
        if word == "ports":
            yield from _ports(_table(value, word, where), where)
        elif word == "vars":
            yield from _vars(_table(value, word, where), where)
        else:
            yield from _fixed(word, value, where)


def _fixed(key: str, value: Any, where: str) -> Iterator[tuple[str, Any]]:
    if rule_of(key) is not None:
        yield key, checked(key, value, where)
    elif keys_below(key):
        for word, below in _table(value, key, where).items():
            yield from _fixed(f"{key}.{word}", below, where)
    else:
        raise unknown(key, where)


def _ports(table: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for word, value in table.items():
        check_name(word, where)
        yield f"ports.{word}", None
        if isinstance(value, dict):
            for key, below in value.items():
                if rule_of(f"ports.{word}.{key}") is None:
                    raise unknown(f"ports.{word}.{key}", where)
                yield f"ports.{word}.{key}", checked(f"ports.{word}.{key}", below, where)
        else:
            yield f"ports.{word}.preferred", checked(f"ports.{word}.preferred", value, where)


def _vars(table: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for word, value in table.items():
        check_variable(word, where)
        yield f"vars.{word}", checked(f"vars.{word}", value, where)


def check_name(word: str, where: str) -> None:
    """Raise ConfigurationError unless `word` can name a port."""
    _checked(f"ports.{word}", word, where, name, "a name of letters, digits, '-' and '_'")


def check_variable(word: str, where: str) -> None:
    """Raise ConfigurationError unless `word` can name a variable."""
    expected = "a name of letters, digits and '_' that steers no program"
    _checked(f"vars.{word}", word, where, variable, expected)


def checked(key: str, value: Any, where: str) -> Any:
    """The value as settings keep it; ConfigurationError naming `where`, key and expectation."""
    rule = rule_of(key)
    if rule is None:
        raise unknown(key, where)
    return _checked(key, value, where, rule.check, rule.expected)


def _checked(key: str, value: Any, where: str, check: Any, expected: str) -> Any:
    try:
        return check(value)
    except WrongValueError as error:
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}..."
        reason = f" ({error})" if str(error) else ""
        raise ConfigurationError(
            f"{where}: {key} = {shown} is not accepted{reason}: expected {expected}",
            resource=key,
            remedy=error.remedy
            or "corral config shows what is in force; the reference lists every key",
        ) from error


def unknown(key: str, where: str) -> ConfigurationError:
    """The error for a key that does not exist, naming those that do."""
    above = "ports.*" if key.startswith("ports.") else key.rpartition(".")[0]
    words = keys_below(above)
    known = ", ".join(words)
    meant = did_you_mean(key.rpartition(".")[2], words)
    place = f"in [{above.replace('*', 'NAME')}]" if above else "at the top"
    return ConfigurationError(
        f"{where}: {key}: unknown key: expected {place} one of {known}{meant}",
        resource=key,
        remedy="remove it or correct its spelling",
    )


def _table(value: Any, key: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{where}: {key} = {value!r} is not accepted: expected a table [{key}]",
            resource=key,
            remedy="write it as a table",
        )
    return value
