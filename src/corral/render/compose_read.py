"""Compose files as one tree: read, extended, included and merged as far as isolation needs it.

Values stay as written, variables included; only what leads to other files is expanded here. What
cannot be read from here (a file in a remote repository) is noted, not guessed.
"""

from __future__ import annotations

import os

from corral.config.files import read_bytes
from corral.errors import ConfigurationError
from corral.model.tuples import NamedTuple
from corral.render import compose_merge
from corral.render.block import remove_block
from corral.render.compose_merge import Tagged
from corral.render.interpolation import dotenv_pairs, expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from corral.render.compose_merge import Tree

# where compose looks when it is told no file, and what it merges on top without being told
DEFAULT_FILES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
DEFAULT_OVERRIDES = (
    "compose.override.yml",
    "compose.override.yaml",
    "docker-compose.override.yml",
    "docker-compose.override.yaml",
)

_LARGEST = 256 * 1024  # bytes of a file: reading takes some 10 s for each MiB
_MOST_VALUES = 500_000


class Unread(NamedTuple):
    """Something that a file refers to and that could not be read: where, under which key, why."""

    service: str
    key: str
    reason: str


class Reading(NamedTuple):
    """The merged tree, the variables that its values may name, and what could not be read.

    `late`: the variables that a further file, as the override is, will see when compose reads it.
    """

    tree: Tree
    environ: Mapping[str, str]
    late: Mapping[str, str]
    unread: tuple[Unread, ...]


def default_files(directory: str) -> tuple[str, ...]:
    """The files that compose itself would find in a directory, an override included; or none."""
    found: list[str] = []
    for names in (DEFAULT_FILES, DEFAULT_OVERRIDES):
        present = [os.path.join(directory, name) for name in names]
        present = [path for path in present if os.path.isfile(path)]
        if not present:
            break
        found.append(present[0])
    return tuple(found)


def read(
    files: Iterable[str], environ: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> Reading:
    """All files merged in their order, as `docker compose -f A -f B` merges them.

    `environ`: the caller's variables; those of the `.env` beside the first file stand behind them.
    `texts`: the contents of files, by absolute path, that are not to be read from disk.
    Raises ConfigurationError for a file that cannot be read or is no Compose file.
    """
    reader = _Reader(texts or {})
    tree: Tree = {}
    known = dict(environ)
    for position, path in enumerate(map(os.path.abspath, files)):
        if position == 0:
            known = _variables(os.path.dirname(path), [".env"]) | known
        try:
            tree = compose_merge.merge(tree, reader.file(path, known, ()))
        except RecursionError as error:
            raise _too_deep(path) from error
    return Reading(
        compose_merge.untagged(tree), reader.environ | known, known, tuple(reader.unread)
    )


def _variables(directory: str, names: Iterable[str]) -> dict[str, str]:
    """The variables of dotenv files, without those that corral wrote: they are nobody's wish."""
    found: dict[str, str] = {}
    for name in names:
        try:
            content = read_bytes(os.path.join(directory, name), _LARGEST) or b""
        except ConfigurationError:  # compose itself reports what it cannot read
            continue
        found.update(dotenv_pairs((remove_block(content) or b"").decode("utf-8", "replace")))
    return found


class _Reader:
    """Reads files and what they lead to, each once; notes what it could not follow."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self.unread: list[Unread] = []
        self.environ: dict[str, str] = {}
        self._parsed: dict[str, Tree] = {}
        self._left = _MOST_VALUES

    def file(self, path: str, environ: Mapping[str, str], including: tuple[str, ...]) -> Tree:
        """One file with its `extends` resolved and its `include` merged below it."""
        if path in including:
            raise ConfigurationError(f"{path} includes itself")
        tree = self._tree(path)
        self._spend(path, tree, _below)
        services = _mapping(tree.get("services"))
        own = {key: value for key, value in tree.items() if key != "include"}
        own["services"] = {name: self._service(path, name, environ, ()) for name in services}
        included: Tree = {}
        for entry in _list(tree.get("include")):
            part = self._included(entry, path, environ, (*including, path))
            included = compose_merge.merge(included, part)
        # tags in `own` speak to the files before it, not to what it includes
        return compose_merge.merge(included, own) if included else own

    def _tree(self, path: str) -> Tree:
        if path not in self._parsed:
            tree: Tree = {}
            text = self._texts.get(path)
            for document in self._documents(path, _content(path) if text is None else text):
                tree = compose_merge.merge(tree, document) if tree else document
            self._parsed[path] = tree
        return self._parsed[path]

    def _spend(self, path: str, value: Any, below: Callable[[Any], Iterable[Any]]) -> None:
        """Count a value and all below it, as often as it is referred to.

        A few lines of anchors, `extends` or `include` can stand for more than any memory holds.
        """
        waiting = [value]
        while waiting:
            self._left -= 1
            if self._left < 0:
                raise ConfigurationError(
                    f"{path} stands for more than {_MOST_VALUES} values once its anchors, "
                    "`extends` and `include` are followed",
                    remedy="correct the file, or name others in [compose] files",
                    resource=path,
                )
            waiting.extend(below(waiting.pop()))

    def _documents(self, path: str, text: str) -> Iterator[Tree]:
        """The documents of a YAML file, each a mapping with text keys; Compose's tags are kept."""
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        yaml = YAML(typ="safe", pure=True)
        yaml.Constructor = _constructor(lambda node: self._spend(path, node, _below_node))
        try:
            documents = list(yaml.load_all(text))
        except (YAMLError, ValueError) as error:  # ValueError: a scalar such as an impossible date
            reason = " ".join(str(error).split())
            raise ConfigurationError(
                f"{path} is no valid YAML: {reason}",
                remedy="see what docker compose config says",
                resource=path,
            ) from error
        except RecursionError as error:
            raise _too_deep(path) from error
        for document in documents:
            if document is not None and not isinstance(document, dict):
                raise ConfigurationError(f"{path} is no Compose file: it holds no mapping")
            yield document or {}

    def _service(
        self, path: str, name: str, environ: Mapping[str, str], seen: tuple[tuple[str, str], ...]
    ) -> Any:
        """A service of a file merged over what it extends, in this file or another."""
        if (path, name) in seen:
            raise ConfigurationError(f"{path}: services.{name}.extends leads back to itself")
        service = _mapping(self._tree(path).get("services")).get(name)
        if not isinstance(service, dict) or "extends" not in service:
            return service
        self._spend(path, service, _below)
        own = {key: value for key, value in service.items() if key != "extends"}
        extends = service["extends"]
        described = extends if isinstance(extends, dict) else {"service": extends}
        wanted = expand(str(described.get("service") or ""), environ)
        file = expand(str(described.get("file") or ""), environ)
        target = self._local(name, "extends", os.path.dirname(path), file) if file else path
        if not target:
            return own
        base = self._service(target, wanted, environ, (*seen, (path, name)))
        return compose_merge.merge_service(base, own) if isinstance(base, dict) else own

    def _included(
        self, entry: Any, path: str, environ: Mapping[str, str], including: tuple[str, ...]
    ) -> Tree:
        described = entry if isinstance(entry, dict) else {"path": entry}
        directory = os.path.dirname(path)
        files = [expand(str(name), environ) for name in _list(described.get("path"))]
        paths = [self._local("", "include", directory, file) for file in files]
        own = expand(str(described.get("project_directory") or ""), environ)
        home = os.path.join(directory, own) if own else os.path.dirname(paths[0] if paths else "")
        named = [expand(str(name), environ) for name in _list(described.get("env_file"))]
        beside = _variables(directory, named) if named else _variables(home, [".env"])
        self.environ = beside | self.environ
        tree: Tree = {}
        for target in filter(None, paths):
            part = self.file(target, beside | dict(environ), including)
            tree = compose_merge.merge(tree, part)
        return tree

    def _local(self, service: str, key: str, directory: str, file: str) -> str:
        """The absolute path of a file that another one names, "" if it is not on this machine."""
        path = os.path.normpath(os.path.join(directory, os.path.expanduser(file)))
        if os.path.isfile(path):
            return path
        self.unread.append(Unread(service, key, f"{file} is no file here, so it was not read"))
        return ""


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _mapping(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _below(value: Any) -> Iterable[Any]:
    """What a value of a tree holds."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Tagged):
        return (value.value,)
    return value if isinstance(value, list) else ()


def _below_node(node: Any) -> Iterable[Any]:
    """What a node of a YAML document holds, keys included."""
    if not isinstance(node.value, list):
        return ()
    pairs = (each if isinstance(each, tuple) else (each,) for each in node.value)
    return (part for pair in pairs for part in pair)


def _too_deep(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is nested too deep, or what it extends or includes is",
        remedy="correct the file, or name others in [compose] files",
        resource=path,
    )


def _content(path: str) -> str:
    content = read_bytes(path, _LARGEST)
    if content is None:
        raise ConfigurationError(f"{path} cannot be read: there is no such file", resource=path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is no text in UTF-8", resource=path) from error


def _constructor(check: Callable[[Any], None]) -> Any:
    """A safe constructor of its own that keeps `!reset` and `!override` and ignores other tags.

    `check` sees the topmost node of each document before anything is made of it.
    """
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    class Constructor(SafeConstructor):
        def construct_document(self, node: Any) -> Any:
            check(node)
            return super().construct_document(node)

    def tagged(constructor: Any, suffix: str, node: Any) -> Any:
        if suffix == "reset":
            return Tagged("reset", None)
        if isinstance(node, MappingNode):
            value = constructor.construct_mapping(node, deep=True)
        elif isinstance(node, SequenceNode):
            value = constructor.construct_sequence(node, deep=True)
        else:
            value = constructor.construct_scalar(node)
        return Tagged("override", value) if suffix == "override" else value

    Constructor.add_multi_constructor("!", tagged)
    return Constructor
