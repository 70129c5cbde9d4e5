"""`corral up`, `env`, `url`, `port`, `db`, `config` and `trust`, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral
from support.repositories import add_worktree, git, make_repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.processes import Tracker

ENVIRONMENT = {"id", "path", "ports", "address", "database", "files"}


def refused(where: Path, *words: str, status: int = 2, **options: Any) -> dict[str, Any]:
    """The one problem of a command that is refused."""
    document = corral(where, *words, "--json", check=status, **options).document
    assert document["result"] == "failed"
    (problem,) = document["problems"]
    assert problem["remedy"]
    return dict(problem)


def test_up_and_status_show_the_same_environment(git_repo: Path) -> None:
    said = corral(git_repo, "up", "--db", "file", "--port", "web", "--port", "api=20456", "--json")
    document = said.document
    assert (document["schema"], document["command"], document["result"]) == ("corral/1", "up", "ok")
    data = document["data"]
    assert set(data) == {
        "environment",
        "owner",
        "session",
        "claimed",
        "inferred",
        "database_created",
        "files",
        "ran",
    }
    environment = data["environment"]
    assert set(environment) == ENVIRONMENT
    assert environment["path"] == str(git_repo)
    assert environment["ports"]["api"] == 20456
    assert set(environment["database"]) == {"isolation", "name", "url"}
    assert environment["files"] == [str(git_repo / ".env.local")]
    assert ask(git_repo, "status")["environment"] == environment
    assert ask(git_repo, "up")["environment"] == environment


def test_up_in_the_home_directory_says_that_it_is_no_project(git_repo: Path) -> None:
    home = os.environ["HOME"]
    assert f"{home} is your home directory, no project; corral down" in corral(home, "up").err
    corral(home, "down")
    assert "no project" not in corral(git_repo, "up", env={"HOME": str(git_repo)}).err


def test_up_acts_in_the_worktree_that_contains_the_directory(git_repo: Path) -> None:
    (git_repo / "sub").mkdir()
    one = ask(git_repo / "sub", "up", "--port", "web")["environment"]
    assert one == ask(git_repo.parent, "up", "--env", str(git_repo / "sub"))["environment"]
    assert one["path"] == str(git_repo)


@pytest.mark.parametrize(
    "words",
    [
        ("up", "--port", "web=abc"),
        ("up", "--port", "web=0"),
        ("up", "--port", "web=65536"),
        ("up", "--port", "web="),
        ("up", "--port", "=3000"),
        ("up", "--port", "a b"),
        ("up", "--port", "../x"),
        ("up", "--port", "web", "--port", "web=3000"),
        ("up", "--db", "mongo"),
        ("up", "--db", "schema"),
        ("up", "--unknown"),
        ("up", "surplus"),
        ("up", "--env", "/nonexistent"),
        ("port", "claim"),
        ("port", "claim", "web", "--count", "0"),
        ("port", "claim", "web=3000", "--count", "2"),
        ("port", "claim", "web", "--count", "20000"),
        ("port", "claim", "web", "--holder", "99999999"),
        ("port", "list", "web"),
        ("port", "release"),
        ("db", "create"),
        ("db", "create", "--db", "container"),
        ("env", "--format", "xml"),
        ("url", "--port"),
        ("trust", "surplus"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    git_repo: Path, state_dir: Path, words: tuple[str, ...]
) -> None:
    refused(git_repo, *words)
    assert not state_dir.exists()
    assert sorted(os.listdir(git_repo)) == [".git", "README"]


def test_a_wrong_configuration_stops_every_command_with_file_and_key(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text("[keeper]\ngrce = 1\n")
    for words in (("up",), ("status",), ("config",)):
        problem = refused(git_repo, *words)
        assert problem["code"] == "configuration"
        assert str(git_repo / "corral.toml") in problem["message"]
        assert "keeper.grce" in problem["message"]


def test_fifty_worktrees_brought_up_at_once_share_no_port(private_root: Path) -> None:
    repository = make_repository(private_root / "repo")
    trees = [private_root / "trees" / f"w{number}" for number in range(50)]
    for tree in trees:
        git(repository, "worktree", "add", "-q", "--detach", str(tree))
    ups = [
        subprocess.Popen(
            [*COMMAND, "up", "--port", "web", "--port", "api", "--db", "file", "--json"],
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for tree in trees
    ]
    said = [up.communicate(timeout=100)[0] for up in ups]
    assert [up.returncode for up in ups] == [0] * 50
    views = [json.loads(text)["data"]["environment"] for text in said]
    ports = [port for view in views for port in view["ports"].values()]
    assert len(set(ports)) == 100
    assert len({view["id"] for view in views}) == 50
    assert len({view["database"]["name"] for view in views}) == 50
    for tree, view in zip(trees, views, strict=True):
        text = (tree / ".env.local").read_text()
        assert f"WEB_PORT={view['ports']['web']}\n" in text
        assert view["id"] in text
    exclude = (repository / ".git" / "info" / "exclude").read_text()
    assert exclude.count("/.env.local") == 1
    assert git(trees[49], "status", "--porcelain") == ""


def test_ten_at_once_in_one_worktree_agree(git_repo: Path) -> None:
    (git_repo / "compose.yaml").write_text("services: {web: {image: x, ports: ['20457:80']}}")
    with ThreadPoolExecutor(10) as pool:
        views = list(
            pool.map(lambda _: ask(git_repo, "up", "--db", "file")["environment"], range(10))
        )
    assert all(view == views[0] for view in views)
    assert (git_repo / ".env").read_text().count(">>> corral") == 1
    assert (git_repo / ".env.local").read_text().count(">>> corral") == 1


@pytest.fixture
def up(git_repo: Path) -> Path:
    """A repository whose environment is up with two ports, a database and odd variables."""
    (git_repo / "corral.toml").write_text(
        "[ports]\nweb = {}\napi = {}\n[database]\nisolation = 'file'\n"
        '[vars]\nODD = "it\'s $HOME `x` #1"\nTEXT = "a\\nb"\n'.replace("it's", "its")
    )
    corral(git_repo, "up")
    return git_repo


def test_the_shell_format_gives_the_same_values_in_a_shell(up: Path) -> None:
    wanted = ask(up, "env", "--format", "shell")["variables"]
    script = corral(up, "env", "--format", "shell").out
    done = subprocess.run(
        ["sh", "-c", f"{script}\nexec env -0"], capture_output=True, text=True, check=True
    )
    got = dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)
    assert wanted.items() <= got.items()


def test_every_format_is_printed_and_json_is_json(up: Path) -> None:
    variables = ask(up, "env")["variables"]
    assert json.loads(corral(up, "env", "--format", "json").out) == variables
    for name in ("dotenv", "shell", "docker-compose", "github", "direnv"):
        assert "WEB_PORT" in corral(up, "env", "--format", name).out
    assert not corral(up, "env", "--no-header").out.startswith("#")


def test_env_before_up_says_what_to_do(git_repo: Path) -> None:
    assert refused(git_repo, "env")["remedy"].startswith("run: corral up")


def test_an_output_file_is_written_kept_and_taken_back(up: Path) -> None:
    file = up / "env.json"
    words = ("env", "--format", "json", "--output", str(file))
    assert ask(up, *words)["file"]["result"] == "written"
    assert ask(up, *words)["file"]["result"] == "unchanged"
    assert file.stat().st_mode & 0o777 == 0o600
    assert git(up, "status", "--porcelain", "--", "env.json") == ""
    corral(up, "up")
    assert file.exists()
    corral(up, "down")
    assert sorted(os.listdir(up)) == [".git", "README", "corral.toml"]


def test_a_file_of_the_users_is_refused_untouched(up: Path) -> None:
    file = up / "env.sh"
    file.write_text("mine\n")
    refused(up, "env", "--format", "shell", "--output", str(file), status=4)
    assert file.read_text() == "mine\n"
    (up / "link.sh").symlink_to(file)
    refused(up, "env", "--format", "shell", "--output", str(up / "link.sh"), status=4)
    assert file.read_text() == "mine\n"
    refused(up, "env", "--output", str(up / "nowhere" / "x"))


def test_a_dotenv_file_of_the_users_gets_one_block_that_up_leaves(up: Path) -> None:
    file = up / "my.env"
    file.write_text("MINE=1\n")
    for _ in range(2):
        corral(up, "env", "--output", str(file))
    corral(up, "up")
    text = file.read_text()
    assert text.startswith("MINE=1\n# >>> corral")
    assert text.count(">>> corral") == 1
    corral(up, "down")
    assert file.read_text() == "MINE=1\n"


def test_the_github_file_is_appended_to(up: Path, private_root: Path) -> None:
    file = private_root / "github-env"
    file.write_text("BEFORE=1\n")
    corral(up, "env", "--format", "github", "--output", str(file))
    assert file.read_text().startswith("BEFORE=1\nWEB_PORT=")


def test_a_url_is_one_line_on_stdout(up: Path) -> None:
    port = ask(up, "env")["variables"]["WEB_PORT"]
    assert corral(up, "url", "web").out == f"http://127.0.0.1:{port}\n"
    assert refused(up, "url", "nothing")["code"] == "not-found"
    assert refused(up, "url")["code"] == "usage"


def test_ports_are_claimed_listed_and_released_one_by_one(git_repo: Path) -> None:
    said = corral(git_repo, "port", "claim", "web", "admin=20458")
    numbers = [int(line) for line in said.out.split()]
    assert numbers[1] == 20458
    assert ask(git_repo, "port", "claim", "web")["claimed"] == []
    rows = ask(git_repo, "port", "list")["ports"]
    assert {row["name"]: row["port"] for row in rows} == dict(
        zip(("web", "admin"), numbers, strict=True)
    )
    ask(git_repo, "port", "release", "web", "20458")
    assert ask(git_repo, "port", "list", "--all")["ports"] == []
    assert refused(git_repo, "port", "release", "web")["code"] == "not-found"


def test_a_run_of_ports_is_contiguous_and_kept(git_repo: Path) -> None:
    ports = ask(git_repo, "port", "claim", "shard", "--count", "4")["ports"]
    assert list(ports) == ["shard", "shard-2", "shard-3", "shard-4"]
    first = ports["shard"]
    assert list(ports.values()) == [first, first + 1, first + 2, first + 3]
    assert ask(git_repo, "port", "claim", "shard", "--count", "4")["ports"] == ports
    assert refused(git_repo, "port", "claim", "shard", "--count", "5", status=4)["code"] == "held"


def test_a_processs_claim_ends_with_it_and_no_stranger_releases_it(
    git_repo: Path, worktree: Callable[[str], Path], track: Tracker
) -> None:
    holder = track.spawn([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pid = str(holder.pid)
    words = ("port", "claim", "web=20459", "--holder", pid)
    assert ask(git_repo, *words)["holder"] == holder.pid
    assert ask(git_repo, "port", "claim", "api", "--holder", pid)["ports"]
    assert len(ask(git_repo, "port", "list", "--holder", pid)["ports"]) == 2
    stranger = worktree("stranger")
    corral(stranger, "up")
    assert refused(stranger, "port", "release", "--holder", pid, status=4)["code"] == "foreign"
    assert ask(stranger, "port", "claim", "web=20459")["ports"]["web"] != 20459
    assert holder.stdin is not None
    holder.stdin.close()
    holder.wait()
    assert not alive(holder.pid)
    assert ask(stranger, "port", "claim", "other=20459")["ports"]["other"] == 20459


def test_the_one_who_claimed_for_a_process_may_release_it(git_repo: Path, track: Tracker) -> None:
    corral(git_repo, "up")
    holder = track.spawn([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    corral(git_repo, "port", "claim", "web", "--holder", str(holder.pid))
    released = ask(git_repo, "port", "release", "web", "--holder", str(holder.pid))["released"]
    assert [row["name"] for row in released] == ["web"]


def test_a_database_goes_through_its_life(git_repo: Path) -> None:
    created = ask(git_repo, "db", "create", "--db", "file")
    assert created["result"] == "created"
    url = created["database"]["url"]
    assert corral(git_repo, "db", "url").out == f"{url}\n"
    assert ask(git_repo, "db", "create", "--db", "file")["result"] == "unchanged"
    assert ask(git_repo, "db", "reset")["result"] == "reset"
    assert [row["url"] for row in ask(git_repo, "db", "list")["databases"]] == [url]
    assert ask(git_repo, "db", "drop")["result"] == "dropped"
    assert refused(git_repo, "db", "url")["code"] == "not-found"
    assert ask(git_repo, "db", "list", "--all")["databases"] == []


def test_config_shows_values_and_sources(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text("[keeper]\ngrace = 5\n")
    found = ask(git_repo, "config", env={"CORRAL_NAMESPACE": "foundry"})
    rows = {row["key"]: (row["value"], row["source"]) for row in found["settings"]}
    assert rows["keeper.grace"] == (5.0, str(git_repo / "corral.toml"))
    assert rows["namespace"] == ("foundry", "CORRAL_NAMESPACE")
    assert rows["keeper.reap"] == ("auto", "default")
    assert corral(git_repo, "config", "keeper.grace").out.split()[:2] == ["keeper.grace", "5"]
    assert refused(git_repo, "config", "keeper.nothing")["code"] == "not-found"


def test_trust_is_given_once_for_exactly_this_content(git_repo: Path) -> None:
    assert ask(git_repo, "trust")["commands"] == []
    (git_repo / "corral.toml").write_text("[setup]\nafter_up = ['touch ran']\n")
    problem = refused(git_repo, "up", status=4)
    assert problem["code"] == "untrusted"
    assert "corral trust" in problem["remedy"]
    assert refused(git_repo, "trust", "--check", status=4)["code"] == "untrusted"
    said = corral(git_repo, "trust")
    assert "touch ran" in said.out
    assert ask(git_repo, "trust", "--check")["trusted"] is True
    assert ask(git_repo, "up")["ran"] == ["touch ran"]
    assert (git_repo / "ran").exists()


def test_a_setup_command_that_fails_leaves_the_environment_up_and_exits_1(git_repo: Path) -> None:
    (git_repo / "corral.toml").write_text("[setup]\nafter_up = ['echo words; exit 3']\n")
    corral(git_repo, "trust")
    said = corral(git_repo, "up", "--json", check=1)
    assert said.document["result"] == "partial"
    assert said.document["problems"][0]["code"] == "setup-failed"
    assert "words" in said.err
    assert said.data["environment"]["id"]


def test_down_takes_back_what_up_made(up: Path, state_dir: Path) -> None:
    (up / ".env.local").write_text("MINE=1\n" + (up / ".env.local").read_text())
    corral(up, "down")
    assert (up / ".env.local").read_text() == "MINE=1\n"
    assert os.listdir(state_dir / "environments") == []
    assert ask(up, "port", "list", "--all")["ports"] == []
    assert refused(up, "env")["code"] == "not-found"


def test_a_leaked_git_dir_does_not_lead_up_astray(git_repo: Path, private_root: Path) -> None:
    other = make_repository(private_root / "other")
    leaked: dict[str, str | None] = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)}
    view = ask(git_repo, "up", "--port", "web", env=leaked)["environment"]
    assert view["path"] == str(git_repo)
    assert (git_repo / ".env.local").exists()
    assert not (other / ".env.local").exists()


def test_a_person_in_a_terminal_is_asked_and_shown_the_commands(
    git_repo: Path, track: Tracker
) -> None:
    (git_repo / "corral.toml").write_text("[setup]\nafter_up = ['touch ran']\n")
    for answer, ran in (("n", False), ("y", True)):
        ours, theirs = os.openpty()
        up = track.spawn(
            [*COMMAND, "up"], cwd=git_repo, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL
        )
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        assert b"touch ran" in shown
        os.write(ours, answer.encode() + b"\n")
        assert up.wait(30) == (0 if ran else 4)
        os.close(ours)
        assert (git_repo / "ran").exists() is ran


def test_a_password_is_not_put_on_the_screen(git_repo: Path) -> None:
    said = corral(git_repo, "up", "--db", "container")
    url = corral(git_repo, "db", "url").out.strip()
    secret = url.partition("@")[0].rpartition(":")[2]
    assert len(secret) == 32
    assert secret not in said.out + said.err
    assert "corral:***@" in said.out
    for words in (("status",), ("status", "--explain"), ("db", "list")):
        shown = corral(git_repo, *words)
        assert secret not in shown.out + shown.err
        assert "corral:***@" in shown.out
    (git_repo / "corral.toml").write_text(
        '[database]\nurl = "postgresql://me:s3cret@localhost/a"\n'
    )
    assert "s3cret" not in corral(git_repo, "config").out
    assert secret in ask(git_repo, "status")["environment"]["database"]["url"]


def test_a_value_that_dotenv_cannot_hold_is_refused_with_the_ways_out(git_repo: Path) -> None:
    toml = git_repo / "corral.toml"
    toml.write_text('[vars]\nHOMEDIR = "$${HOME}/x"\n')
    problem = refused(git_repo, "up")
    assert ".env.local cannot hold variable HOMEDIR" in problem["message"]
    assert '[outputs] dotenv = ""' in problem["remedy"]
    assert "corral env --format shell" in problem["remedy"]
    toml.write_text('[outputs]\ndotenv = ""\n' + toml.read_text())
    corral(git_repo, "up")
    assert "HOMEDIR='${HOME}/x'" in corral(git_repo, "env", "--format", "shell").out


def test_down_takes_the_empty_directories_that_up_made(git_repo: Path) -> None:
    (git_repo / "conf" / "deep").mkdir(parents=True)
    (git_repo / "conf" / "deep" / "local.yml").write_text("a: 1\n")
    (git_repo / "conf" / "other").mkdir()
    (git_repo / "conf" / "other" / "b.yml").write_text("b: 1\n")
    (git_repo / "corral.toml").write_text(
        '[files]\ncopy = ["conf/deep/local.yml"]\nlink = ["conf/other/b.yml"]\n'
    )
    other = add_worktree(git_repo, git_repo.parent / "other")
    (other / "corral.toml").write_text((git_repo / "corral.toml").read_text())
    (other / "mine").mkdir()
    up = ask(other, "up")
    assert str(other / "conf") not in up["environment"]["files"]
    (other / "conf" / "other" / "notes").write_text("the user's\n")
    corral(other, "down")
    assert not (other / "conf" / "deep").exists()
    assert (other / "conf" / "other" / "notes").exists()
    assert not (other / "conf" / "other" / "b.yml").exists()
    assert (other / "mine").is_dir()
