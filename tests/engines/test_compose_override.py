"""The override from real base files, merged by the real Compose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corral.render.compose_base import published_ports, read_base
from corral.render.compose_database import Database, client_file, inside_url, server_file
from corral.render.compose_override import override_for
from support import readers
from support.compose_projects import PROJECTS, Project

if TYPE_CHECKING:
    from pathlib import Path

    from corral.render.compose_base import Base
    from corral.render.compose_override import OverrideResult

PROJECT = "acme-feature-0a1b2c3d"
ENVIRONMENT = "env-0a1b2c3d"

projects = pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)


def _base(project: Project, directory: Path) -> Base:
    return read_base(project.laid(directory), {})


def _override(base: Base, **more: Any) -> OverrideResult:
    ports = {port.key: 22001 + n for n, port in enumerate(published_ports(base))}
    return override_for(base, project=PROJECT, environment_id=ENVIRONMENT, ports=ports, **more)


def _merged(project: Project, directory: Path, **more: Any) -> tuple[Any, OverrideResult]:
    result = _override(_base(project, directory), **more)
    (directory / "override.yaml").write_text(result.text)
    config = readers.compose_config(
        directory, *project.files, "override.yaml", profiles=project.profiles
    )
    return config, result


@projects
def test_ports_are_read_as_compose_reads_them(project: Project, private_root: Path) -> None:
    base = _base(project, private_root)
    config: Any = readers.compose_config(private_root, *project.files, profiles=project.profiles)
    theirs = {
        (name, port["target"], port["protocol"])
        for name, service in config["services"].items()
        for port in service.get("ports", ())
    }
    ours = {port.key for port in published_ports(base)}
    for service in base.services:
        for dealt in service.dealt:
            numbers = range(dealt.first, dealt.last + 1)
            ours |= {(service.name, number, dealt.protocol) for number in numbers}
    assert ours == theirs
    assert {service.name for service in base.services} == set(config["services"])


@projects
def test_preferred_ports_are_those_of_the_base(project: Project, private_root: Path) -> None:
    base = _base(project, private_root)
    config: Any = readers.compose_config(private_root, *project.files, profiles=project.profiles)
    for port in published_ports(base):
        theirs = {
            int(str(entry["published"]).partition("-")[0]) if "published" in entry else None
            for entry in config["services"][port.service]["ports"]
            if (entry["target"], entry["protocol"]) == (port.target, port.protocol)
        }
        assert port.preferred in theirs


@projects
def test_the_merged_project_has_no_fixed_port_and_no_fixed_name(
    project: Project, private_root: Path
) -> None:
    config, result = _merged(project, private_root)
    claimed = {(p.service, p.target, p.protocol): str(p.host_port) for p in result.published}
    dealt = {(w.service) for w in result.warnings if w.key == "ports"}
    found = {}
    for name, service in config["services"].items():
        assert "container_name" not in service
        assert service["labels"]["corral.env"] == ENVIRONMENT
        for port in service.get("ports", ()):
            assert port["host_ip"] == "127.0.0.1"
            if "published" in port:
                found[name, port["target"], port["protocol"]] = port["published"]
            else:
                assert name in dealt
    assert found == claimed
    assert config["name"] == PROJECT
    for kind in ("volumes", "networks"):
        for described in config.get(kind, {}).values():
            assert described.get("external") or described["name"].startswith(PROJECT)
            assert "config" not in described.get("ipam", {})


@projects
def test_every_service_gets_the_variables_and_keeps_its_own(
    project: Project, private_root: Path
) -> None:
    base: Any = readers.compose_config(
        private_root, *project.laid(private_root), profiles=project.profiles
    )
    variables = {"OVERRIDDEN": "it's $5 ${x}", "FROM_LIST": "new", "WEB_PORT": "22001"}
    config, _ = _merged(project, private_root, variables=variables)
    for name, service in config["services"].items():
        environment = service["environment"]
        assert environment["OVERRIDDEN"] == "it's $$5 $${x}"
        assert environment["FROM_LIST"] == "new"
        own = base["services"][name].get("environment", {})
        assert environment == {**own, **environment}


@projects
def test_a_database_of_its_own_is_reached_by_every_service_that_can(
    project: Project, private_root: Path
) -> None:
    database = Database(
        "corral-db", 23000, str(private_root / "server.env"), str(private_root / "client.env")
    )
    (private_root / "server.env").write_text(server_file(database, "secret-1"))
    (private_root / "client.env").write_text(client_file(database, "secret-1"))
    config, result = _merged(project, private_root, database=database)
    assert "secret-1" not in result.text
    server = config["services"].pop("corral-db")
    assert server["environment"]["POSTGRES_PASSWORD"] == "secret-1"
    assert server["ports"][0]["published"] == "23000"
    unreached = {w.service for w in result.warnings if w.message.startswith("corral-db cannot")}
    for name, service in config["services"].items():
        if name in unreached:
            assert "network_mode" in service
            continue
        assert service["environment"]["DATABASE_URL"] == inside_url(database, "secret-1")
        assert service["depends_on"]["corral-db"]["condition"] == "service_healthy"
        assert "corral-db" in service["networks"]


def test_a_variable_in_the_container_port_counts_when_it_is_used(private_root: Path) -> None:
    text = 'services:\n  web: {image: box, ports: ["${PORT:-3000}:${PORT:-3000}"]}\n'
    project = Project("late", {"compose.yaml": text})
    config, result = _merged(project, private_root)
    assert [(p["target"], p["published"]) for p in config["services"]["web"]["ports"]] == [
        (3000, "22001")
    ]
    (private_root / ".env").write_text("PORT=4000\n")
    again: Any = readers.compose_config(private_root, "compose.yaml", "override.yaml")
    assert [(p["target"], p["published"]) for p in again["services"]["web"]["ports"]] == [
        (4000, "22001")
    ]
    assert result.published[0].name == "web"


@pytest.mark.parametrize(
    "environment",
    [
        '["DATABASE_URL=postgres://elsewhere/x", "PASSED", "N=1"]',
        '{DATABASE_URL: "postgres://elsewhere/x", PASSED: null, N: 1, B: true, V: "${V:-v}"}',
    ],
)
def test_a_database_of_its_own_takes_the_place_of_the_one_that_the_base_names(
    environment: str, private_root: Path
) -> None:
    text = f"services:\n  web:\n    image: box\n    environment: {environment}\n"
    database = Database("corral-db", 23000, str(private_root / "s"), str(private_root / "c"))
    (private_root / "s").write_text(server_file(database, "pw"))
    (private_root / "c").write_text(client_file(database, "pw"))
    config, _ = _merged(
        Project("own", {"compose.yaml": text}),
        private_root,
        database=database,
        variables={"DATABASE_URL": "postgresql://127.0.0.1:1/x", "MORE": "1"},
    )
    found = config["services"]["web"]["environment"]
    assert found["DATABASE_URL"] == inside_url(database, "pw")
    assert (found["N"], found["MORE"]) == ("1", "1")
    assert "PASSED" in found
    assert found.get("V", "v") == "v"
