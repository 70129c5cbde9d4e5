"""Settings: where they come from, what they may be, and what is said of a wrong one."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from corral.config import PortWish, Settings, load_settings, with_flags
from corral.config.listing import listing
from corral.config.schema import RULES
from corral.decide.ports import Pool
from corral.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = """
namespace = "foundry"
[pool]
first = 23000
last = 23999
[ports]
web = 3000
api = { preferred = 8000, env = "API_ADDRESS_PORT", handoff = "fd", protocol = "udp" }
spare = {}
[database]
isolation = "schema"
url = "postgresql://localhost/acme"
seed = "dev.sqlite3"
template = { migrate = "make migrate", inputs = ["migrations/**"] }
[compose]
files = ["compose.yaml"]
[vars]
API_URL = "http://localhost:${ports.api}"
[files]
link = [".env.secrets"]
copy = ["config/local.yml"]
[setup]
after_up = ["npm ci"]
[outputs]
dotenv = ".env.mine"
[keeper]
reap = "report"
grace = "2m"
[protect]
programs = ["my-daemon"]
"""


@pytest.fixture
def project(private_root: Path) -> Path:
    root = private_root / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


def load(project: Path, **variables: str) -> Settings:
    home = project.parent / "home"
    return load_settings(str(project), {"HOME": str(home), **variables})


def refusal(project: Path, **variables: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(project, **variables)
    return str(caught.value)


def test_nothing_configured_gives_the_defaults(project: Path) -> None:
    assert load(project) == Settings(root=str(project))
    assert load(project).pool == Pool(22000, 31999)
    assert load(project).grace == 30.0


def test_every_key_is_read(project: Path) -> None:
    (project / "corral.toml").write_text(EVERYTHING)
    settings = load(project)
    assert settings.namespace == "foundry"
    assert settings.pool == Pool(23000, 23999)
    assert settings.ports == (
        PortWish("web", 3000),
        PortWish("api", 8000, "API_ADDRESS_PORT", "fd", "udp"),
        PortWish("spare"),
    )
    assert settings.database == (
        "schema",
        "postgresql://localhost/acme",
        "dev.sqlite3",
        "make migrate",
        ("migrations/**",),
    )
    assert settings.compose_files == ("compose.yaml",)
    assert settings.vars == (("API_URL", "http://localhost:${ports.api}"),)
    assert (settings.link, settings.copy) == ((".env.secrets",), ("config/local.yml",))
    assert settings.after_up == ("npm ci",)
    assert settings.dotenv == ".env.mine"
    assert (settings.reap, settings.grace) == ("report", 120.0)
    assert settings.protect == {"my-daemon"}


def test_every_key_of_the_reference_is_shown_with_its_source(project: Path) -> None:
    path = project / "corral.toml"
    path.write_text(EVERYTHING)
    rows = {row.key: row for row in listing(load(project, CORRAL_KEEPER_GRACE="7"))}
    shown = {
        key.replace("ports.web.", "ports.*.").replace("vars.API_URL", "vars.*") for key in rows
    }
    assert {rule.key for rule in RULES} <= shown
    assert rows["keeper.grace"] == ("keeper.grace", 7.0, "CORRAL_KEEPER_GRACE")
    assert rows["ports.web.preferred"] == ("ports.web.preferred", 3000, str(path))
    assert rows["ports.web.handoff"] == ("ports.web.handoff", "hold", "default")


def test_the_nearer_source_wins_key_by_key(project: Path) -> None:
    user = project.parent / "home/.config/corral/corral.toml"
    user.parent.mkdir(parents=True)
    user.write_text('[keeper]\ngrace = 1\nreap = "off"\n[outputs]\ndotenv = "user"')
    (project / "corral.toml").write_text(
        '[keeper]\ngrace = 2\n[ports]\napi = { preferred = 1000, env = "A" }\nweb = 3\n'
    )
    (project / "corral.local.toml").write_text("[keeper]\ngrace = 3\n[ports]\napi = 2000\n")
    settings = load(project)
    assert (settings.grace, settings.reap, settings.dotenv) == (3.0, "off", "user")
    assert settings.ports == (PortWish("api", 2000, "A"), PortWish("web", 3))
    settings = load(project, CORRAL_KEEPER_GRACE="4s", CORRAL_PORTS_API="3000")
    assert (settings.grace, settings.port("api")) == (4.0, PortWish("api", 3000, "A"))
    flagged = with_flags(settings, isolation="file", ports=[PortWish("api", 4000)])
    assert flagged.port("api") == PortWish("api", 4000, "A")
    assert dict(flagged.sources)["database.isolation"] == "--db"
    assert dict(flagged.sources)["ports.api.preferred"] == "--port"
    assert dict(settings.sources)["keeper.reap"] == str(user)


def test_the_file_of_the_worktrees_top_counts_in_its_subdirectories(project: Path) -> None:
    (project / "corral.toml").write_text("[keeper]\ngrace = 5\n")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    (project / "a" / "corral.toml").write_text("[keeper]\ngrace = 6\n")
    assert load_settings(str(below), {"HOME": "/nonexistent"}).grace == 5.0


def test_outside_git_the_nearest_file_upwards_counts(private_root: Path) -> None:
    below = private_root / "plain" / "below"
    below.mkdir(parents=True)
    assert load_settings(str(below), {}).root == str(below)
    (private_root / "plain" / "corral.toml").write_text("[keeper]\ngrace = 5\n")
    settings = load_settings(str(below), {})
    assert (settings.grace, settings.root) == (5.0, str(below.parent))


def test_a_table_in_pyproject_is_read(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        "[tool.other]\na = 1\n[tool.corral.ports]\nweb = 8080\n"
    )
    assert load(project).ports == (PortWish("web", 8080),)


@pytest.mark.parametrize(
    "text", ["", "[tool.other]\nname = 'corral'\n", "[project]\nname='corral'\n"]
)
def test_a_pyproject_without_the_table_configures_nothing(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text)
    assert load(project) == Settings(root=str(project))


def test_two_files_for_one_project_are_an_error_naming_both(project: Path) -> None:
    (project / "corral.toml").write_text("")
    (project / "pyproject.toml").write_text("[tool.corral]\n")
    message = refusal(project)
    assert "corral.toml" in message
    assert "pyproject.toml" in message


def test_a_broken_pyproject_of_another_purpose_is_not_looked_into(project: Path) -> None:
    (project / "pyproject.toml").write_text("this is no TOML")
    assert load(project) == Settings(root=str(project))


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("nmespace = 'x'", "nmespace", "namespace"),
        ("[keeper]\ngrce = 1", "keeper.grce", "grace"),
        ("[prots]\nweb = 1", "prots", "ports"),
        ("[ports]\nweb = { prefered = 1 }", "ports.web.prefered", "preferred"),
        ("[database.template]\nmigrat = 'x'", "database.template.migrat", "migrate"),
        ("keeper = 3", "keeper", "a table [keeper]"),
        ("ports = [1]", "ports", "a table [ports]"),
        ("[database]\ntemplate = 'x'", "database.template", "a table [database.template]"),
        ("namespace = 3", "namespace", "a word of"),
        ("namespace = 'Foundry'", "namespace", "a word of"),
        ("namespace = '-x'", "namespace", "a word of"),
        ("namespace = 'x--y'", "namespace", "a word of"),
        ("namespace = ''", "namespace", "a word of"),
        ("namespace = '日本'", "namespace", "a word of"),
        ("namespace = 'a23456789012345678901'", "namespace", "at most 20"),
        ("[ports]\nweb = 'abc'", "ports.web", "1 to 65535"),
        ("[ports]\nweb = 65536", "ports.web", "1 to 65535"),
        ("[ports]\nweb = 0", "ports.web", "1 to 65535"),
        ("[ports]\nweb = -1", "ports.web", "1 to 65535"),
        ("[ports]\nweb = true", "ports.web", "1 to 65535"),
        ("[ports]\nweb = 3000.0", "ports.web", "1 to 65535"),
        ("[ports]\n'../x' = 3000", "ports.../x", "a name of letters"),
        ("[ports]\n'a b' = 3000", "ports.a b", "a name of letters"),
        ("[ports]\n'1st' = 3000", "ports.1st", "a name of letters"),
        ("[ports]\n'' = 3000", "ports.", "a name of letters"),
        ("[ports]\n'web-' = 3000", "ports.web-", "a name of letters"),
        ("[ports]\nweb = { env = '1X' }", "ports.web.env", "the name of an environment variable"),
        ("[ports]\nweb = { env = 'CORRAL_X' }", "ports.web.env", "not beginning with CORRAL_"),
        ("[ports]\nweb = { handoff = 'give' }", "ports.web.handoff", "release"),
        ("[ports]\nweb = { protocol = 'sctp' }", "ports.web.protocol", "udp"),
        ("[pool]\nfirst = 5000\nlast = 4000", "pool.first", "pool.first <= pool.last"),
        ("[pool]\nfirst = 80", "pool.first", "1024"),
        ("[pool]\nlast = 70000", "pool.last", "65535"),
        ("[database]\nisolation = 'shema'", "database.isolation", "container"),
        ("[database]\nisolation = ['file']", "database.isolation", "container"),
        ("[database]\nurl = ''", "database.url", "a URL"),
        ("[compose]\nfiles = 'compose.yaml'", "compose.files", "a list"),
        ("[compose]\nfiles = ['../x.yaml']", "compose.files", "leaves the project's directory"),
        ("[vars]\nDEBUG = true", "vars.DEBUG", "text, in quotes"),
        ("[vars]\n'A-B' = 'x'", "vars.A-B", "a name of letters"),
        ("[vars]\n'Ä' = 'x'", "vars.Ä", "a name of letters"),
        ("[vars]\nCORRAL_OWNER = 'x'", "vars.CORRAL_OWNER", "corral's own"),
        ('[vars]\nA = "x\\u0000y"', "vars.A", "NUL"),
        ("[files]\nlink = ['/etc/passwd']", "files.link", "leaves the project's directory"),
        ("[files]\ncopy = ['a/../../b']", "files.copy", "leaves the project's directory"),
        ("[files]\ncopy = ['.git/config']", "files.copy", "git's own directory"),
        ("[files]\ncopy = ['.']", "files.copy", "the project's directory itself"),
        ("[setup]\nafter_up = 'npm ci'", "setup.after_up", "a list of commands"),
        ("[setup]\nafter_up = ['']", "setup.after_up", "empty"),
        ("[outputs]\ndotenv = '../.env'", "outputs.dotenv", "leaves the project's directory"),
        ("[keeper]\ngrace = -1", "keeper.grace", "seconds from 0"),
        ("[keeper]\ngrace = nan", "keeper.grace", "seconds from 0"),
        ("[keeper]\ngrace = 'soon'", "keeper.grace", "seconds from 0"),
        ("[keeper]\nreap = false", "keeper.reap", "report"),
        ("[protect]\nprograms = [1]", "protect.programs", "names of programs"),
    ],
)
def test_a_wrong_key_or_value_names_file_key_and_expectation(
    project: Path, text: str, key: str, expected: str
) -> None:
    (project / "corral.toml").write_text(text)
    message = refusal(project)
    assert str(project / "corral.toml") in message
    assert key in message
    assert expected in message


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "BASH_ENV"),
        *("ENV", "IFS", "SHELL", "GIT_SSH_COMMAND", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS"),
        *("PROMPT_COMMAND", "path", "https_proxy", "npm_config_script_shell", "CLAUDE_ENV_FILE"),
    ],
)
def test_no_configuration_sets_a_variable_that_steers_programs(project: Path, name: str) -> None:
    file = project / "corral.toml"
    for text, key in (
        (f"[vars]\n{name} = './evil'\n", f"vars.{name}"),
        (f"[ports]\nweb = {{ env = '{name}' }}\n", "ports.web.env"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigurationError) as caught:
            load(project)
        assert f"{file}: {key}" in caught.value.message
        assert "choose another name" in (caught.value.remedy or "")
    file.unlink()
    assert "no configuration sets it" in refusal(project, **{f"CORRAL_VARS_{name}": "./evil"})


def test_ordinary_names_and_ports_named_like_tools_are_free(project: Path) -> None:
    (project / "corral.toml").write_text(
        "[ports]\ngit = {}\n[vars]\nNODE_ENV = 'test'\nPYTHONUNBUFFERED = '1'\nPATHS = 'a'\n"
    )
    assert [name for name, _ in load(project).vars] == ["NODE_ENV", "PYTHONUNBUFFERED", "PATHS"]
    assert load(project).port("git").variable == "GIT_PORT"


def test_broken_toml_names_the_file_and_the_line(project: Path) -> None:
    (project / "corral.toml").write_text("[ports]\nweb = \n")
    message = refusal(project)
    assert "corral.toml is not valid TOML" in message
    assert "line 2" in message


def test_a_file_that_is_not_utf8_is_refused(project: Path) -> None:
    (project / "corral.toml").write_bytes(b"\xff\xfe")
    assert "not valid TOML" in refusal(project)


def test_a_directory_or_a_huge_file_in_place_of_the_file_is_refused(project: Path) -> None:
    (project / "corral.toml").mkdir()
    assert "expected a regular file" in refusal(project)
    (project / "corral.toml").rmdir()
    (project / "corral.toml").write_bytes(b"#" * 2_000_000)
    assert "at most 1024 KiB" in refusal(project)


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("[ports]\nmy-api = 1\nmy_api = 2", "MY_API_PORT"),
        ("[ports]\nweb = 1\napi = { env = 'WEB_PORT' }", "WEB_PORT"),
        ("[ports]\nweb = 1\napi = 1", "tcp 1"),
        ("[ports]\nweb = 1\n[vars]\nWEB_PORT = 'x'", "WEB_PORT"),
    ],
)
def test_two_meanings_of_one_variable_or_port_are_an_error(
    project: Path, text: str, shared: str
) -> None:
    (project / "corral.toml").write_text(text)
    assert shared in refusal(project)


def test_tcp_and_udp_may_have_the_same_number(project: Path) -> None:
    (project / "corral.toml").write_text(
        "[ports]\ndns = 5353\nmdns = { preferred = 5353, protocol = 'udp' }"
    )
    assert [wish.preferred for wish in load(project).ports] == [5353, 5353]


def test_variables_set_every_kind_of_value(project: Path) -> None:
    settings = load(
        project,
        CORRAL_NAMESPACE="harness",
        CORRAL_POOL_FIRST="24000",
        CORRAL_PORTS_WEB="3001",
        CORRAL_VARS_A_b="x",
        CORRAL_FILES_LINK='["a", "b"]',
        CORRAL_SETUP_AFTER_UP="npm ci, please",
        CORRAL_DATABASE_TEMPLATE_MIGRATE="make migrate",
        CORRAL_OUTPUTS_DOTENV="",
    )
    assert settings.namespace == "harness"
    assert settings.pool == Pool(24000, 31999)
    assert settings.ports == (PortWish("web", 3001),)
    assert settings.vars == (("A_b", "x"),)
    assert settings.link == ("a", "b")
    assert settings.after_up == ("npm ci, please",)
    assert settings.database.migrate == "make migrate"
    assert settings.dotenv == ""
    assert settings.commands_from is None


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("CORRAL_KEEPER_GRCE", "1", "CORRAL_KEEPER_GRACE"),
        ("CORRAL_POOL_FRIST", "1", "CORRAL_POOL_FIRST"),
        ("CORRAL_DATABASE_TEMPLATE", "1", "CORRAL_DATABASE_TEMPLATE_MIGRATE"),
        ("CORRAL_PORTS_WEB", "abc", "1 to 65535"),
        ("CORRAL_PORTS_WEB", "", "1 to 65535"),
        ("CORRAL_PORTS_WEB", "9" * 5000, "1 to 65535"),
        ("CORRAL_PORTS_", "1", "a name of letters"),
        ("CORRAL_VARS_", "1", "a name of letters"),
        ("CORRAL_POOL_FIRST", "1e3", "1 to 65535"),
        ("CORRAL_POOL_LAST", "2000", "pool.first <= pool.last"),
        ("CORRAL_FILES_LINK", "[broken", "no TOML array"),
        ("CORRAL_FILES_LINK", "[1]", "a list"),
        ("CORRAL_NAMESPACE", "", "a word of"),
    ],
)
def test_a_wrong_variable_is_named(project: Path, variable: str, value: str, expected: str) -> None:
    message = refusal(project, **{variable: value})
    assert variable in message
    assert expected in message


def test_variables_that_are_no_settings_are_left_alone(project: Path) -> None:
    plain = {
        "CORRAL_SESSION": "s",
        "CORRAL_OWNER": "o",
        "CORRAL_KEEP": "1",
        "CORRAL_STATE_DIR": "/s",
        "CORRAL_FENCE": "1",
        "CORRAL_REQUIRE_ENGINES": "docker",
        "CORRAL_SOMEBODY_ELSES": "x",
        "CORRALX": "x",
    }
    assert load(project, **plain) == Settings(root=str(project))


def test_commands_of_the_projects_files_are_pinned_by_their_content(project: Path) -> None:
    (project / "corral.toml").write_text("[setup]\nafter_up = ['true']\n")
    first = load(project).commands_from
    assert first is not None
    assert first.files == ("corral.toml",)
    assert load(project).commands_from == first
    (project / "corral.local.toml").write_text("[vars]\nGREETING = 'hello'\n")
    second = load(project).commands_from
    assert second is not None
    assert second.files == ("corral.toml", "corral.local.toml")
    assert second.digest != first.digest


def test_a_change_beside_the_table_in_pyproject_does_not_ask_for_trust_again(
    project: Path,
) -> None:
    table = "[tool.corral.setup]\nafter_up = ['true']\n"
    (project / "pyproject.toml").write_text(f"{table}[project]\nversion = '1'\n")
    first = load(project).commands_from
    (project / "pyproject.toml").write_text(f"{table}[project]\nversion = '2'\n")
    assert load(project).commands_from == first
    (project / "pyproject.toml").write_text(table.replace("true", "false"))
    assert load(project).commands_from != first


def test_the_users_own_commands_need_no_trust(project: Path) -> None:
    user = project.parent / "home/.config/corral/corral.toml"
    user.parent.mkdir(parents=True)
    user.write_text("[setup]\nafter_up = ['true']\n")
    settings = load(project)
    assert settings.after_up == ("true",)
    assert settings.commands_from is None


def test_a_relative_config_home_is_ignored(project: Path) -> None:
    assert load(project, XDG_CONFIG_HOME="relative") == Settings(root=str(project))


def test_nothing_slow_is_imported_where_no_file_is(project: Path) -> None:
    program = (
        "import sys; from corral.config import load_settings; load_settings(sys.argv[1], {});"
        "print(sorted({'tomllib', 'json', 'hashlib', 'corral.config.schema'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(project)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in {"[]", "['hashlib']"}
