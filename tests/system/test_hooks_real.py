"""Real servers, started as agents start them, and what a session's end does to each.

A hook is run as the agent runs it: JSON on stdin, variables by CLAUDE_ENV_FILE, 1.5 s at the end,
after which the agent is gone. A second live session and a person run the same program in the same
worktree, in the same ways.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.agents import settle
from support.command import COMMAND, alive, ask
from support.engines import find_program, require_engine
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.agents import Agent
    from support.processes import Tracker

    MakeAgent = Callable[..., Agent]

PATIENCE = 90
NO_GRACE = {"CORRAL_KEEPER_GRACE": "0"}
RUN = (*COMMAND, "run", "--detach", "--")


class Crew:
    """Two agents that live in one worktree, and a person; each starts things in its own way."""

    def __init__(
        self, make: MakeAgent, track: Tracker, where: Path, how: Sequence[str] = ()
    ) -> None:
        self.one, self.two = make("one", how=how), make("two", how=how)
        self._track, self._where, self._how = track, where, how
        for each in (self.one, self.two):
            each.start()

    def start(self, command: str, places: Callable[[str], Sequence[Path]]) -> dict[str, set[int]]:
        """`command` by each of them, its name for `{who}`; the pids that its processes wrote.

        `{quiet}` stands for redirections that leave nothing of the shell's open. `places`: the
        files with pids that the program of each writes.
        """
        for name, each in (("one", self.one), ("two", self.two)):
            each.shell(self._command(command, name))
        subprocess.run(
            [*self._how, "bash", "-c", self._command(command, "person")],
            cwd=self._where, check=True, timeout=PATIENCE, start_new_session=True,
        )  # fmt: skip
        return {
            who: {self._track.pid(pid_in(path)) for path in places(who)}
            for who in ("one", "two", "person")
        }

    @staticmethod
    def _command(command: str, who: str) -> str:
        quiet = "</dev/null >/dev/null 2>&1"
        return command.replace("{who}", who).replace("{quiet}", quiet)

    def end_the_first(self, *ended: int) -> None:
        """The first one's session ends, and these processes with it."""
        self.one.quit()
        settle()
        listed = ask(self._where, "session", "list")["sessions"]
        lives = {session: row["life"] for row in listed for session in row["sessions"]}
        if lives["one"] != "over":
            # The hook was killed before it could write anything down: a crash, shown as one.
            report = ask(self._where, "cleanup", "--yes", env=NO_GRACE, timeout=PATIENCE)
            assert report["remaining"] == []
        settle(*ended)


def pid_in(path: Path) -> int:
    """The pid on the first line of a file that a program writes when it runs."""
    return int(eventually(lambda: _first_line(path), PATIENCE, f"a pid in {path}"))


def _first_line(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    return text.partition("\n")[0] if "\n" in text else ""


def spared(started: dict[str, set[int]]) -> None:
    """Nothing of the second session's or the person's has ended."""
    for who in ("two", "person"):
        assert started[who]
        assert all(map(alive, started[who])), who


def left_of_the_first(where: Path, mine: set[int]) -> dict[str, str]:
    """What status shows of these processes: group and reason of each, by pid."""
    seen = ask(where, "status")
    return {
        row["id"]: f"{group}: {row['reason']}"
        for group in ("owned", "kept", "shared", "orphans", "unknown")
        for row in seen[group]
        if row["kind"] == "process" and int(row["id"]) in mine
    }


BARE_AND_RECORDED = pytest.mark.parametrize("recorded", [False, True], ids=["bare", "corral run"])

_NODE = """
const {fork, spawn} = require('child_process');
const fs = require('fs');
const [role, place] = process.argv.slice(2);
const write = (name, pid) => fs.writeFileSync(`${place}/${name}`, `${pid}\\n`);
if (role === 'server') {
    fork(__filename, ['forked', place]);
    spawn(process.execPath, [__filename, 'detached', place],
          {detached: true, stdio: 'ignore'}).unref();
    require('http').createServer((_, answer) => answer.end('served')).listen(0, '127.0.0.1');
    write('shell', process.ppid);
} else {
    setInterval(() => {}, 1000);
}
write(role, process.pid);
"""


@BARE_AND_RECORDED
def test_a_node_server_behind_npm_ends_with_its_children(
    agent: MakeAgent, track: Tracker, git_repo: Path, private_root: Path, recorded: bool
) -> None:
    require_engine("node")
    (git_repo / "server.js").write_text(_NODE)
    scripts = {who: f"node server.js server {private_root / who}" for who in ("one", "two")}
    scripts["person"] = f"node server.js server {private_root / 'person'}"
    for who in scripts:
        (private_root / who).mkdir()
    (git_repo / "package.json").write_text(json.dumps({"scripts": scripts}))
    crew = Crew(agent, track, git_repo)
    npm = "npm run --silent {who}"
    command = f"{shlex.join(RUN)} {npm} {{quiet}}" if recorded else f"{npm} {{quiet}} &"
    started = crew.start(
        command,
        lambda who: [
            private_root / who / role for role in ("server", "forked", "detached", "shell")
        ],
    )
    crew.end_the_first(*started["one"])
    spared(started)


_SERVER = """
import http.server, os, sys
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()}\\n")
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
"""


def test_a_python_server_that_is_cut_off_with_nohup_and_setsid_ends(
    agent: MakeAgent, track: Tracker, git_repo: Path, private_root: Path
) -> None:
    (git_repo / "server.py").write_text(_SERVER)
    crew = Crew(agent, track, git_repo)
    command = f"nohup setsid {sys.executable} server.py {private_root}/{{who}} {{quiet}} &"
    started = crew.start(command, lambda who: [private_root / who])
    crew.end_the_first(*started["one"])
    spared(started)


_WSGI = """
def app(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]
"""
_CONFIG = """
import os
place = os.environ["PLACE"]
def when_ready(server):
    write("master")
def post_worker_init(worker):
    write("worker")
def write(role):
    path = f"{place}-{role}"
    with open(path + ".new", "w") as file:
        file.write(f"{os.getpid()}\\n")
    os.rename(path + ".new", path)
"""


def gunicorn(where: Path, root: Path) -> tuple[str, Callable[[str], Sequence[Path]]]:
    """A gunicorn at the port of each, whose title overwrites what its environment was."""
    require_engine("servers")
    (where / "wsgi.py").write_text(_WSGI)
    (where / "config.py").write_text(_CONFIG)
    (where / "corral.toml").write_text("[ports]\none = {}\ntwo = {}\nperson = {}\n")
    command = (
        f"env PLACE={root}/{{who}} {sys.executable} -m gunicorn -c config.py "
        f"--worker-tmp-dir {root} -b 127.0.0.1:$(cat {root}/port-{{who}}) wsgi:app"
    )
    return command, lambda who: [root / f"{who}-master", root / f"{who}-worker"]


def claimed(where: Path, root: Path) -> dict[str, int]:
    """The ports of the worktree, each also in a file that commands read."""
    ports: dict[str, int] = ask(where, "up")["environment"]["ports"]
    for name, port in ports.items():
        (root / f"port-{name}").write_text(str(port))
    return ports


def titled(pid: int) -> bool:
    """Whether a process overwrote its environment with its title."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return b"CORRAL_OWNER" not in file.read()


def test_a_gunicorn_that_overwrote_its_environment_ends_when_corral_ran_it(
    agent: MakeAgent, track: Tracker, git_repo: Path, private_root: Path
) -> None:
    command, places = gunicorn(git_repo, private_root)
    claimed(git_repo, private_root)
    crew = Crew(agent, track, git_repo)
    started = crew.start(f"{shlex.join(RUN)} {command} {{quiet}}", places)
    assert all(map(titled, started["one"]))
    crew.end_the_first(*started["one"])
    spared(started)


def test_a_gunicorn_that_overwrote_its_environment_is_shown_when_nobody_recorded_it(
    agent: MakeAgent, track: Tracker, git_repo: Path, private_root: Path
) -> None:
    """Nothing proves whose it is; it is seen at the port that is this worktree's."""
    command, places = gunicorn(git_repo, private_root)
    ports = claimed(git_repo, private_root)
    crew = Crew(agent, track, git_repo)
    started = crew.start(f"{command} {{quiet}} &", places)
    assert all(map(titled, started["one"]))
    crew.end_the_first()
    shown = left_of_the_first(git_repo, started["one"])
    assert set(map(int, shown)) == started["one"]
    for reason in shown.values():
        assert reason.startswith("unknown: ")
        assert str(ports["one"]) in reason
    assert all(map(alive, started["one"]))
    spared(started)


@pytest.fixture
def unprivileged(track: Tracker) -> tuple[str, ...]:
    """What stands before a program so that it is not root, as PostgreSQL wants it.

    All who are started so are one user, and root's files are theirs.
    """
    require_engine("postgres")
    if os.geteuid() != 0:
        return ()
    account = ("--map-user=1", "--map-group=1")  # one that has an entry in every passwd
    holder = track.spawn(["unshare", "--user", *account, "sleep", "infinity"])
    eventually(lambda: _users_of(holder.pid) != _users_of(os.getpid()), PATIENCE)
    eventually(lambda: Path(f"/proc/{holder.pid}/uid_map").read_text().split()[:1] == ["1"])
    return ("nsenter", f"--target={holder.pid}", "--user", "--preserve-credentials")


def _users_of(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/user")


@pytest.fixture
def clusters(unprivileged: tuple[str, ...], private_root: Path) -> Path:
    """A directory with a cluster of each one's own in it, by name."""
    made = private_root / "pg"
    made.mkdir()
    initdb = [*unprivileged, _program("initdb"), "-A", "trust", "-N", "-D", str(made / "one")]
    subprocess.run(initdb, cwd="/", check=True, capture_output=True)
    for who in ("two", "person"):
        shutil.copytree(made / "one", made / who)
    return made


def _program(name: str) -> str:
    """A program of the same PostgreSQL as initdb; distributions wrap some of them elsewhere."""
    found = find_program("initdb")
    assert found is not None
    return str(Path(found).resolve().with_name(name))


def _log(clusters: Path, who: str) -> str:
    return (clusters / f"{who}.log").read_text()


@BARE_AND_RECORDED
def test_a_private_postgresql_is_shut_down_and_keeps_its_data(
    agent: MakeAgent, track: Tracker, git_repo: Path, unprivileged: tuple[str, ...],
    clusters: Path, recorded: bool,
) -> None:  # fmt: skip
    """A client is connected: without being asked in the right way, the server waits for it."""
    crew = Crew(agent, track, git_repo, unprivileged)
    start = (
        f"{_program('pg_ctl')} start -w -t {PATIENCE} -D {clusters}/{{who}} "
        f"-l {clusters}/{{who}}.log -o \"-c listen_addresses='' -k {clusters}/{{who}}\" {{quiet}}"
    )
    run = f"{shlex.join((*COMMAND, 'run', '--'))} "
    started = crew.start(
        (run if recorded else "") + start, lambda who: [clusters / who / "postmaster.pid"]
    )
    psql = _psql(unprivileged, clusters)
    _said(psql("one", "create table kept as select generate_series(1, 10000) as n"))
    null = subprocess.DEVNULL
    client = track.spawn(psql("one", "select pg_sleep(600)"), cwd="/", stdout=null, stderr=null)
    asleep = "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'"
    eventually(lambda: _said(psql("one", asleep)) == "1", PATIENCE)
    crew.end_the_first(*started["one"])
    client.wait(PATIENCE)
    log = _log(clusters, "one")
    assert "received fast shutdown request" in log
    assert log.endswith("database system is shut down\n")
    assert "terminating any other active server processes" not in log
    spared(started)
    for who in ("two", "person"):
        assert "shut" not in _log(clusters, who).partition("ready to accept connections")[2]
    again = [*unprivileged, "sh", "-c", start.replace("{who}", "one").replace("{quiet}", "")]
    subprocess.run(again, cwd="/", check=True, stdout=subprocess.DEVNULL)
    track.pid(pid_in(clusters / "one" / "postmaster.pid"))
    assert "was not properly shut down" not in _log(clusters, "one")
    assert _said(psql("one", "select count(*) from kept")) == "10000"


def _psql(how: Sequence[str], clusters: Path) -> Callable[[str, str], list[str]]:
    def argv(who: str, query: str) -> list[str]:
        place = ("-h", str(clusters / who), "-d", "postgres")
        return [*how, _program("psql"), *place, "-qtAc", query]

    return argv


def _said(argv: Sequence[str]) -> str:
    return subprocess.run(argv, cwd="/", check=True, capture_output=True, text=True).stdout.strip()
