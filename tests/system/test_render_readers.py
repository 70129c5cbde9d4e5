"""What corral writes comes back the same through the programs that read it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import dotenv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.errors import InvalidValueError
from corral.render.formats import render_text
from corral.render.shell import SPECIAL
from corral.render.spec import DbIsolation, EnvIsolationSpec
from corral.render.stateless import (
    generate_docker_compose_override,
    generate_dotenv,
    generate_shell_exports,
)
from support import hostile, readers
from support.engines import require_engine

if TYPE_CHECKING:
    from pathlib import Path

SHELLS = {"sh": ["sh"], "dash": ["dash"], "bash": ["bash"], "zsh": ["zsh", "-f"]}

shells = pytest.mark.parametrize("shell", SHELLS)
_few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
_variables = st.dictionaries(
    hostile.names.filter(lambda name: name not in SPECIAL | {"PATH": "", "PWD": "", "IFS": ""}),
    hostile.values,
    min_size=1,
    max_size=6,
)


def _need_shell(shell: str) -> list[str]:
    if shell in {"dash", "zsh"}:
        require_engine(shell)
    return SHELLS[shell]


def _carried(fmt: str, variables: dict[str, str]) -> dict[str, str]:
    kept = {}
    for name, value in variables.items():
        with suppress(InvalidValueError):
            render_text(fmt, {name: value}, title="t")
            kept[name] = value
    return kept


def _written(directory: Path, fmt: str, variables: dict[str, str]) -> Path:
    path = directory / "written"
    text = render_text(fmt, variables, title="it's a `title` \\")
    path.write_bytes(text.encode())
    return path


def _numbered(fmt: str) -> dict[str, str]:
    return _carried(fmt, {f"V{n}": value for n, value in enumerate(hostile.VALUES)})


# shells


@shells
@pytest.mark.parametrize("fmt", ["shell", "direnv"])
def test_a_shell_that_sources_exports_hands_on_every_value(
    shell: str, fmt: str, private_root: Path
) -> None:
    variables = _numbered(fmt)
    assert len(variables) == len(hostile.VALUES)
    read = readers.sourced(_need_shell(shell), _written(private_root, fmt, variables))
    assert readers.subset(read, list(variables)) == variables


@shells
def test_a_shell_that_sources_a_dotenv_file_reads_every_value(
    shell: str, private_root: Path
) -> None:
    variables = _numbered("dotenv")
    path = _written(private_root, "dotenv", variables)
    read = readers.sourced(_need_shell(shell), path, export_all=True)
    assert readers.subset(read, list(variables)) == variables


@shells
@_few
@given(variables=_variables)
def test_shells_read_back_any_variables(
    shell: str, private_root: Path, variables: dict[str, str]
) -> None:
    argv = _need_shell(shell)
    for fmt, export_all in (("shell", False), ("dotenv", True)):
        kept = _carried(fmt, variables)
        read = readers.sourced(argv, _written(private_root, fmt, kept), export_all=export_all)
        assert readers.subset(read, list(kept)) == kept


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_names_that_are_refused_are_those_that_the_shell_keeps(
    shell: str, private_root: Path
) -> None:
    path = private_root / "written"
    for name in ("UID", "RANDOM", "LINENO", "_"):
        path.write_text(f"export {name}='sentinel'\n")
        read: dict[str, str] = {}
        with suppress(readers.ReaderError):
            read = readers.sourced(_need_shell(shell), path)
        assert read.get(name) != "sentinel"


# python-dotenv, from a file as an application loads it


def test_python_dotenv_reads_every_value_from_a_file(private_root: Path) -> None:
    variables = _numbered("dotenv")
    path = _written(private_root, "dotenv", variables)
    assert dotenv.dotenv_values(path) == variables


# Compose


def test_compose_reads_every_value_from_the_project_s_dotenv_file(private_root: Path) -> None:
    variables = _numbered("dotenv")
    text = render_text("dotenv", variables, title="it's a `title` \\")
    assert readers.compose_dotenv(private_root, text, list(variables)) == variables


def test_compose_reads_every_value_from_an_env_file(private_root: Path) -> None:
    variables = _numbered("dotenv")
    text = render_text("dotenv", variables, title="it's a `title` \\")
    assert readers.compose_env_file(private_root, text) == variables


def test_compose_reads_every_value_from_an_environment_mapping(private_root: Path) -> None:
    variables = _numbered("docker-compose")
    assert len(variables) == len(hostile.VALUES)
    text = render_text("docker-compose", variables, title="it's a `title` \\")
    base = "services:\n  app:\n    image: none\n"
    (private_root / "override.yaml").write_text(text)
    files = ("compose.yaml", "override.yaml")
    assert readers.compose_environment(private_root, base, *files) == variables


@settings(_few, max_examples=8)
@given(variables=_variables)
def test_compose_reads_back_any_variables(private_root: Path, variables: dict[str, str]) -> None:
    names = {f"V{n}_{name}": value for n, (name, value) in enumerate(variables.items())}
    kept = _carried("dotenv", names) | {"ONE": "1"}
    text = render_text("dotenv", kept, title="t")
    assert readers.compose_dotenv(private_root, text, list(kept)) == kept
    (private_root / ".env").unlink()
    (private_root / "override.yaml").write_text(
        render_text("docker-compose", names, title="t"), encoding="utf-8"
    )
    base = "services:\n  app:\n    image: none\n"
    files = ("compose.yaml", "override.yaml")
    assert readers.compose_environment(private_root, base, *files) == names


# the documented ways of use


def _spec(**fields: object) -> EnvIsolationSpec:
    known = {"worktree_id": "fb563322", "port": 8001, "namespace": "harness", **fields}
    return EnvIsolationSpec(**known)  # type: ignore[arg-type]


def test_env_takes_a_dotenv_file_without_header(private_root: Path) -> None:
    path = private_root / ".env.fb563322"
    path.write_text(generate_dotenv(_spec(db_isolation="schema"), header=False))
    done = subprocess.run(
        ["sh", "-c", 'env $(cat "$1") env', "sh", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert {"PORT=8001", "DB_SCHEMA=worktree_fb563322"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_sourcing_the_exports_gives_the_next_program_the_variables(
    shell: str, private_root: Path
) -> None:
    path = private_root / ".harness_env_fb563322.sh"
    path.write_text(generate_shell_exports(_spec(db_isolation="file")))
    done = subprocess.run(
        [
            *_need_shell(shell),
            "-c",
            'source "$1" && "$2" -c "$3"',
            "x",
            str(path),
            sys.executable,
            "import os; print(os.environ['PORT'], os.environ['DATABASE_URL'])",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "8001 sqlite:////tmp/harness_fb563322.db\n"


@pytest.mark.parametrize("mode", DbIsolation)
def test_compose_merges_the_generated_file_with_a_base(
    mode: DbIsolation, private_root: Path
) -> None:
    (private_root / "docker-compose.yml").write_text(
        'services:\n  app:\n    image: none\n    ports: ["8001:80"]\n'
    )
    generated = private_root / "docker-compose.fb563322.yml"
    generated.write_text(generate_docker_compose_override(_spec(db_isolation=mode)))
    config = readers.compose_config(private_root, "docker-compose.yml", generated.name)
    services = config["services"]
    assert isinstance(services, dict)
    assert {"app", "harness_fb563322"} <= set(services)
    assert ("harness_fb563322_db" in services) == (mode is DbIsolation.CONTAINER)


def test_a_generated_file_changes_the_named_service_of_a_base(private_root: Path) -> None:
    (private_root / "docker-compose.yml").write_text(
        'services:\n  app:\n    image: none\n    ports: ["80:80"]\n    container_name: fixed\n'
    )
    generated = private_root / "docker-compose.fb563322.yml"
    generated.write_text(generate_docker_compose_override(_spec(), service="app"))
    config = readers.compose_config(private_root, "docker-compose.yml", generated.name)
    services = config["services"]
    assert isinstance(services, dict)
    application = services["app"]
    assert [(p["host_ip"], p["published"], p["target"]) for p in application["ports"]] == [
        ("127.0.0.1", "8001", 8001)
    ]
    assert application["container_name"] == "harness_fb563322"
    assert application["environment"] == {"PORT": "8001"}
