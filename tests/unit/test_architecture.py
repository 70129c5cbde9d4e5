"""What the source must look like: rules that no linter knows."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = Path(__file__).parents[2] / "src" / "corral"
_MODULES = sorted(_SOURCE.rglob("*.py"))

_SUBPROCESS_DOORS = {"backends/_command.py", "kernel/spawn.py"}
_SUBPROCESS_MODULES = {"subprocess", "pty", "multiprocessing", "asyncio"}
_SUBPROCESS_CALLS = {"system", "popen", "posix_spawn", "posix_spawnp"}

_ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}

# Each costs more to import than corral's own work takes; import them inside functions.
_SLOW = {
    "asyncio",
    "dataclasses",
    "datetime",
    "email",
    "http",
    "importlib.metadata",
    "inspect",
    "logging",
    "pathlib",
    "psutil",
    "psycopg",
    "rich",
    "ruamel",
    "shtab",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "tomllib",
    "urllib",
}
_HOT_PACKAGES = {"model", "decide", "kernel", "store", "services", "backends", "cli"}

# Modules that no hot path imports at its own start, each with what it may bring along.
_OFF_THE_HOT_PATH = {
    "backends/_command.py": {"subprocess"},
    "kernel/_psutil_sockets.py": {"psutil"},
    "kernel/_psutil_table.py": {"psutil"},
}

# Programs of their own, which are run and never imported.
_PROGRAMS = {"demo/app.py"}

_FORBIDDEN_WORDS = {"manager", "handler", "helper", "utils", "misc"}
_MODULE_LINES = 350
_FUNCTION_LINES = 30

_named = pytest.mark.parametrize("module", _MODULES, ids=lambda m: str(m.relative_to(_SOURCE)))


def _name(module: Path) -> str:
    return module.relative_to(_SOURCE).as_posix()


def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(), filename=str(module))


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not in functions or for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*node.decorator_list, node.args):
                yield from ast.walk(part)
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for part in node.orelse:
                yield from _at_import(part)
        else:
            yield node
            yield from _at_import(node)


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _within(name: str, packages: set[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[: n + 1]) in packages for n in range(len(parts)))


@_named
def test_programs_are_started_only_at_the_two_doors(module: Path) -> None:
    if _name(module) in _SUBPROCESS_DOORS:
        return
    for node in ast.walk(_tree(module)):
        for name in _imported(node):
            assert not _within(name, _SUBPROCESS_MODULES), f"imports {name}"
        if isinstance(node, ast.Call) and not _starts_itself(node):
            called = ast.unparse(node.func)
            assert called not in {f"os.{name}" for name in _SUBPROCESS_CALLS}, f"{node.lineno}"


def _starts_itself(call: ast.Call) -> bool:
    """corral may start its own second half anywhere: this very interpreter is no tool."""
    return bool(call.args) and ast.unparse(call.args[0]) == "sys.executable"


@_named
def test_nothing_reads_the_environment_at_import(module: Path) -> None:
    if _name(module) in _PROGRAMS:
        return
    for node in _at_import(_tree(module)):
        assert not _ENVIRONMENT & set(_imported(node))
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in _ENVIRONMENT, f"line {node.lineno}"


@_named
def test_the_hot_path_imports_nothing_slow_at_module_level(module: Path) -> None:
    if module.relative_to(_SOURCE).parts[0] not in _HOT_PACKAGES:
        return
    slow = _SLOW - _OFF_THE_HOT_PATH.get(_name(module), set())
    found = {
        name
        for node in _at_import(_tree(module))
        for name in _imported(node)
        if _within(name, slow)
    }
    assert not found


@_named
def test_a_module_fits_a_reader(module: Path) -> None:
    assert len(module.read_text().splitlines()) < _MODULE_LINES


@_named
def test_names_of_modules_say_what_they_hold(module: Path) -> None:
    assert not _FORBIDDEN_WORDS & set(module.stem.strip("_").split("_"))


def test_nine_of_ten_functions_are_shorter_than_thirty_lines() -> None:
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in _MODULES
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[len(lengths) * 9 // 10] < _FUNCTION_LINES
