"""The names of `import corral`: all there, lazily, and the same for type checkers."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys

import pytest

import corral


def _typed() -> dict[str, str]:
    """Public name -> module, as the imports for type checkers say."""
    tree = ast.parse(inspect.getsource(corral))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module != "typing":
                    for alias in each.names:
                        assert alias.asname == alias.name, "only `X as X` is exported"
                        found[alias.name] = str(each.module).removeprefix("corral.")
    return found


@pytest.mark.parametrize("name", corral.__all__)
def test_a_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(corral, name)
    assert name in dir(corral)
    if name != "__version__":
        assert inspect.getdoc(value)


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    assert _typed() == corral._HOMES


def test_the_names_are_sorted() -> None:
    assert list(corral.__all__) == sorted(corral.__all__)
    assert list(corral._HOMES) == sorted(corral._HOMES)


@pytest.mark.parametrize(
    "name",
    [
        *("EnvIsolationSpec", "DbIsolation", "OutputFormat", "generate_env_config"),
        *("generate_dotenv", "generate_docker_compose_override", "generate_shell_exports"),
        *("assign_port", "schema_name", "container_name"),
        *("allocate_ephemeral_port", "record_allocation", "release_allocation"),
        *("list_allocations", "reap_stale_allocations", "canonicalize_release_id"),
        *("acquire_conductor_mutex", "release_conductor_mutex"),
        *("prepare_cleanup", "cleanup", "EnumerationError", "Environment"),
    ],
)
def test_the_promised_names_are_public(name: str) -> None:
    assert name in corral.__all__


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        corral.nothing  # type: ignore[attr-defined] # noqa: B018 (the access is tested)


def test_importing_corral_imports_nothing_else() -> None:
    program = (
        "import json, sys; before = set(sys.modules); import corral;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)) <= {"__future__", "corral"}
