from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from corral.errors import ConfigurationError, InvalidValueError
from corral.render import compose_merge
from corral.render.block import place_block
from corral.render.compose_base import Warned, published_ports, read_base
from corral.render.compose_database import (
    Database,
    client_file,
    inside_url,
    outside_url,
    server_file,
)
from corral.render.compose_override import Publication, override_for
from corral.render.compose_read import default_files
from support.compose_projects import PROJECTS, Project

if TYPE_CHECKING:
    from pathlib import Path

    from corral.render.compose_base import Base

_DATABASE = Database("corral-db", 23000, "/state/server.env", "/state/client.env")


def _base(directory: Path, text: str, environ: dict[str, str] | None = None) -> Base:
    (directory / "compose.yaml").write_text(text)
    return read_base([str(directory / "compose.yaml")], environ or {})


def _claims(base: Base) -> dict[tuple[str, int, str], int]:
    return {port.key: 22001 + n for n, port in enumerate(published_ports(base))}


def _override(base: Base, **more: Any) -> str:
    known = {"project": "acme-1", "environment_id": "env-1", "ports": _claims(base)}
    return override_for(base, **{**known, **more}).text


# what is read


def test_a_sole_port_has_the_name_of_its_service_and_several_add_their_number(
    private_root: Path,
) -> None:
    base = _base(
        private_root,
        'services:\n  web: {ports: ["3000:80"]}\n'
        '  dns: {ports: ["53:53/udp", "53:53", "81"]}\n  udp: {ports: ["5353/udp"]}\n',
    )
    assert [(port.name, port.preferred) for port in published_ports(base)] == [
        ("web", 3000),
        ("dns_53_udp", 53),
        ("dns_53", 53),
        ("dns_81", None),
        ("udp", None),
    ]
    assert base.service("web") is base.services[0]
    assert base.service("nobody") is None


def test_variables_come_from_the_caller_before_the_project_s_dotenv_file(
    private_root: Path,
) -> None:
    text = 'services:\n  web: {ports: ["${A:-1}:80", "${B:-2}:81", "${C:-3}:82"]}\n'
    (private_root / ".env").write_text("A=11\nB=12\n")
    base = _base(private_root, text, {"A": "21"})
    assert [port.preferred for port in published_ports(base)] == [21, 12, 3]


def test_what_corral_wrote_into_the_dotenv_file_is_no_wish_of_the_project_s(
    private_root: Path,
) -> None:
    (private_root / ".env").write_bytes(place_block(b"A=11\n", "env-1", b"A=22001\n"))
    base = _base(private_root, 'services:\n  web: {ports: ["${A:-1}:80"]}\n')
    assert published_ports(base)[0].preferred == 11


def test_the_files_that_compose_would_find_are_found(private_root: Path) -> None:
    assert default_files(str(private_root)) == ()
    (private_root / "docker-compose.override.yml").touch()
    assert default_files(str(private_root)) == ()
    (private_root / "docker-compose.yml").touch()
    (private_root / "compose.yaml").touch()
    assert [path.rpartition("/")[2] for path in default_files(str(private_root))] == [
        "compose.yaml",
        "docker-compose.override.yml",
    ]


def test_no_files_are_an_empty_project() -> None:
    assert read_base([], {}).services == ()


@pytest.mark.parametrize(
    "text",
    [
        "services: [",
        "a: b: c",
        "- a list\n",
        "just text",
        "services:\n  web:\n    image: a\n    image: b\n",
        "a: *unknown\n",
        "\x01",
    ],
)
def test_what_is_no_compose_file_is_an_error_that_names_it(text: str, private_root: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"compose\.yaml"):
        _base(private_root, text)


def test_bytes_that_are_no_text_are_an_error(private_root: Path) -> None:
    (private_root / "compose.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigurationError, match="no text in UTF-8"):
        read_base([str(private_root / "compose.yaml")], {})


def test_a_missing_file_is_an_error(private_root: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_base([str(private_root / "missing.yaml")], {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "services:\n",
        "services: []\n",
        "services: {web: }\n",
        "services: {web: text}\n",
        "services: {web: {ports: text, networks: text, volumes: null, environment: 3}}\n",
        "services: {web: {deploy: text, scale: many, ports: ['80']}}\n",
        "volumes: text\nnetworks: {a: text}\ninclude: null\n",
        "services: {web: {extends: null}, api: {extends: {service: nobody}}}\n",
        "services: !unknown {web: !unknown {image: !unknown box, ports: !unknown ['80']}}\n",
    ],
)
def test_odd_but_valid_files_break_nothing(text: str, private_root: Path) -> None:
    base = _base(private_root, text)
    assert _override(base).startswith('name: "acme-1"\n')


def test_what_is_not_on_this_machine_is_said(private_root: Path) -> None:
    base = _base(
        private_root,
        "include: ['oci://example/x', missing.yaml]\n"
        "services: {web: {extends: {file: 'git://example/y', service: x}, ports: ['80']}}\n",
    )
    assert [(warned.service, warned.key) for warned in base.warnings] == [
        ("web", "extends"),
        ("", "include"),
        ("", "include"),
    ]
    assert published_ports(base)


@pytest.mark.parametrize(
    "text",
    [
        "services: {a: {extends: b}, b: {extends: {service: a}}}\n",
        "services: {a: {extends: a}}\n",
        "services: {a: {extends: {file: compose.yaml, service: a}}}\n",
        "include: [compose.yaml]\n",
    ],
)
def test_what_leads_back_to_itself_is_an_error(text: str, private_root: Path) -> None:
    with pytest.raises(ConfigurationError, match="itself"):
        _base(private_root, text)


def test_a_port_that_cannot_be_read_is_said_and_not_published(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {ports: ['80', 'x:y']}}\n")
    assert [port.target for port in published_ports(base)] == [80]
    assert [warned.key for warned in base.warnings] == ["ports"]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_what_cannot_be_isolated_is_said_by_service_and_key(
    project: Project, private_root: Path
) -> None:
    base = read_base(project.laid(private_root), {})
    assert {(warned.service, warned.key) for warned in base.warnings} == project.warned
    assert all(warned.message for warned in base.warnings)
    for database in (None, _DATABASE):
        assert _override(base, database=database, variables={"A": "1"})


# merging


def _merged(base: dict[str, Any], over: dict[str, Any]) -> Any:
    return compose_merge.untagged(compose_merge.merge_service(base, over))


def test_services_merge_by_the_rules_of_each_key() -> None:
    reset = compose_merge.Tagged("reset", None)
    over = compose_merge.Tagged("override", ["9"])
    assert _merged({"ports": ["1"]}, {"ports": ["1", "2"]}) == {"ports": ["1", "2"]}
    assert _merged({"ports": ["1"]}, {"ports": reset}) == {}
    assert _merged({"ports": ["1"]}, {"ports": over}) == {"ports": ["9"]}
    assert _merged({}, {"ports": over}) == {"ports": ["9"]}
    assert _merged({"image": "a"}, {"image": None}) == {"image": "a"}
    assert _merged({"environment": ["A=1", "B"]}, {"environment": {"A": 2}}) == {
        "environment": {"A": 2, "B": None}
    }
    assert _merged({"environment": {"A": 1}}, {"environment": {"A": reset}}) == {"environment": {}}
    assert _merged({"networks": ["a"]}, {"networks": {"b": {"x": 1}}}) == {
        "networks": {"a": None, "b": {"x": 1}}
    }
    assert _merged({"volumes": ["a:/x", "/y"]}, {"volumes": [{"target": "/x"}, "b:/y"]}) == {
        "volumes": [{"target": "/x"}, "b:/y"]
    }
    assert _merged({"volumes": "odd"}, {"volumes": ["/y"]}) == {"volumes": ["/y"]}
    assert _merged({"deploy": {"a": {"b": 1}}}, {"deploy": {"a": {"c": 2}}}) == {
        "deploy": {"a": {"b": 1, "c": 2}}
    }


def test_files_merge_by_name() -> None:
    base = {"services": {"a": {"image": "x"}, "b": None}, "volumes": {"v": None}}
    over = {"services": {"a": {"ports": ["1"]}, "b": {"image": "y"}}, "volumes": {"w": {}}}
    assert compose_merge.merge(base, over) == {
        "services": {"a": {"image": "x", "ports": ["1"]}, "b": {"image": "y"}},
        "volumes": {"v": None, "w": {}},
    }


# what is written


def test_the_override_is_the_same_each_time_and_names_no_worker(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {image: box, ports: ['3000:3000']}}\n")
    text = _override(base, variables={"LOG": "debug", "WEB_PORT": "22001", "HOST": "127.0.0.1"})
    assert text == _override(base, variables=[("LOG", "debug")])
    assert text == (
        'name: "acme-1"\n'
        "services:\n"
        "  web:\n"
        "    container_name: !reset null\n"
        "    ports: !override\n"
        '      - "127.0.0.1:22001:3000"\n'
        "    labels:\n"
        '      corral.env: "env-1"\n'
        "    environment:\n"
        '      LOG: "debug"\n'
    )


def test_namespace_and_address_are_those_of_the_environment(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {ports: ['53:53/udp']}}\n")
    text = _override(base, namespace="foundry", address="127.4.5.6", variables={"H": "127.4.5.6"})
    assert 'foundry.env: "env-1"' in text
    assert '"127.4.5.6:22001:53/udp"' in text
    assert "environment" not in text


def test_what_is_published_comes_back_with_its_claim(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {ports: ['3000:80']}}\n")
    result = override_for(base, project="p", environment_id="e", ports={("web", 80, "tcp"): 22005})
    assert result.published == (Publication("web", 80, "tcp", 22005, "web"),)
    assert result.warnings == ()


def test_a_port_without_a_claim_is_an_error(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {ports: ['3000:80']}}\n")
    with pytest.raises(InvalidValueError, match="web publishes 80/tcp"):
        _override(base, ports={("web", 81, "tcp"): 22005})


def test_a_variable_that_is_none_is_an_error(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {image: box}}\n")
    with pytest.raises(InvalidValueError):
        _override(base, variables={"A B": "1"})


# the database


def test_the_password_is_in_the_files_and_not_in_the_override(private_root: Path) -> None:
    base = _base(private_root, "services: {web: {image: box}}\n")
    text = _override(base, database=_DATABASE)
    assert '"/state/client.env"' in text
    assert '"/state/server.env"' in text
    assert "corral-db-data:" in text
    assert server_file(_DATABASE, "s3cret") == (
        "POSTGRES_USER=corral\nPOSTGRES_DB=app\nPOSTGRES_PASSWORD=s3cret\n"
    )
    assert client_file(_DATABASE, "s3cret") == (
        "DATABASE_URL=postgresql://corral:s3cret@corral-db:5432/app\n"
    )


def test_the_url_leads_to_the_service_inside_and_to_the_claimed_port_outside() -> None:
    assert inside_url(_DATABASE, "pw") == "postgresql://corral:pw@corral-db:5432/app"
    assert outside_url(_DATABASE, "pw") == "postgresql://corral:pw@127.0.0.1:23000/app"
    assert outside_url(_DATABASE, "pw", "127.4.5.6") == (
        "postgresql://corral:pw@127.4.5.6:23000/app"
    )
    assert _DATABASE.container("acme-1") == "acme-1-corral-db-1"


@pytest.mark.parametrize("password", ["", "a b", "a@b", "a/b", "é", "a\n"])
def test_a_password_that_a_url_cannot_hold_is_refused(password: str) -> None:
    for function in (inside_url, outside_url, client_file, server_file):
        with pytest.raises(InvalidValueError, match="password"):
            function(_DATABASE, password)


def test_a_database_that_the_base_has_by_that_name_is_an_error(private_root: Path) -> None:
    base = _base(private_root, "services: {corral-db: {image: box}}\n")
    with pytest.raises(InvalidValueError, match="corral-db"):
        _override(base, database=_DATABASE)


def test_a_service_without_a_network_of_the_project_s_is_said_to_miss_the_database(
    private_root: Path,
) -> None:
    base = _base(private_root, "services: {web: {image: box, network_mode: none}}\n")
    result = override_for(base, project="p", environment_id="e", ports={}, database=_DATABASE)
    assert result.warnings == (
        Warned(
            "web",
            "network_mode",
            "corral-db cannot be reached by its name from here, so DATABASE_URL is not set",
        ),
    )
    assert "client.env" not in result.text


@pytest.mark.parametrize(
    "environment", ["[DATABASE_URL=x, A=1, P]", "{DATABASE_URL: x, A: 1, P: }"]
)
def test_the_base_s_own_database_url_gives_way(environment: str, private_root: Path) -> None:
    text = f"services:\n  web: {{environment: {environment}}}\n"
    written = _override(_base(private_root, text), database=_DATABASE, variables={"M": "$1"})
    assert ('    environment: !override\n      A: "1"\n      P: null\n      M: "$$1"\n') in written


def test_truth_values_and_variables_of_the_base_are_written_as_they_stand(
    private_root: Path,
) -> None:
    text = 'services:\n  web: {environment: {DATABASE_URL: x, B: true, V: "${V:-v}"}}\n'
    written = _override(_base(private_root, text), database=_DATABASE)
    assert '      B: "true"\n      V: "${V:-v}"\n' in written
