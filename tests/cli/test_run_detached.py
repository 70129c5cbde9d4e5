"""`corral run --detach`: a service that goes on alone, under a supervisor, and is never lost."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.command import COMMAND, alive, ask, corral, start
from support.registry import recorded
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

_SLEEP = ("sleep", "600")


@pytest.fixture
def place(private_root: Path) -> Path:
    """A plain directory."""
    directory = private_root / "place"
    directory.mkdir()
    return directory


def _of(state_dir: Path, role: str) -> list[int]:
    return [
        r["identity"]["pid"]
        for r in recorded(state_dir)
        if r["role"] == role and r["state"] == "live"
    ]


def _log(place: Path, name: str) -> str:
    return corral(place, "logs", name).out


def test_it_runs_in_a_session_of_its_own_with_nothing_of_the_callers(place: Path) -> None:
    script = 'ps -o sid=,tty= -p $$; echo "pid $$"; wc -c; echo $(ls /proc/self/fd); pwd'
    pid = start(place, "sh", "-c", f"{script}; exec sleep 600", name="job")
    lines = eventually(lambda: _lines(place, "job", 5))
    session, terminal = lines[0].split()
    assert (int(session), terminal) == (pid, "?")
    assert lines[1:] == [f"pid {pid}", "0", "0 1 2 3", str(place)]


def _lines(place: Path, name: str, count: int) -> list[str]:
    lines = _log(place, name).splitlines()
    return lines if len(lines) >= count else []


def test_a_shell_that_captures_the_output_is_not_kept_waiting(place: Path) -> None:
    words = " ".join(COMMAND)
    script = f"text=$({words} run --detach --name job -- sleep 600 2>&1); echo done: $text"
    done = subprocess.run(
        ["sh", "-c", script], cwd=place, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.startswith("done: job pid ")


def test_supervisor_and_service_are_recorded_and_the_supervisor_is_no_child(
    place: Path, state_dir: Path
) -> None:
    pid = start(place, *_SLEEP, name="job")
    (service,), (supervisor,) = _of(state_dir, "service"), _of(state_dir, "supervisor")
    assert service == pid
    with open(f"/proc/{pid}/stat") as file:
        assert int(file.read().rpartition(")")[2].split()[1]) == supervisor
    with open(f"/proc/{supervisor}/environ", "rb") as file:
        assert b"CORRAL_OWNER" not in file.read()
    assert os.readlink(f"/proc/{supervisor}/fd/1") == "/dev/null"


def test_a_service_without_a_name_is_given_one(place: Path) -> None:
    one, two = (ask(place, "run", "--detach", "--", *_SLEEP) for _ in range(2))
    assert one["name"].startswith("sleep-")
    assert one["name"] != two["name"]
    assert corral(place, "stop", one["name"]).status == 0
    assert not alive(one["pid"])
    assert alive(two["pid"])


def test_a_name_that_runs_already_is_said_and_nothing_is_started(
    place: Path, state_dir: Path
) -> None:
    first = ask(place, "run", "--detach", "--name", "web", "--port", "web", "--", *_SLEEP)
    again = ask(place, "run", "--detach", "--name", "web", "--port", "web", "--", "touch", "made")
    assert again == {**first, "already": True}
    assert not (place / "made").exists()
    assert len(_of(state_dir, "service")) == 1


def test_many_starts_at_once_under_one_name_start_it_once(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    script = "echo $$ >>started; exec sleep 600"
    words = [*COMMAND, "run", "--detach", "--name", "web", "--", "sh", "-c", script]
    starts = [track.spawn(words, cwd=place, stdout=subprocess.PIPE) for _ in range(20)]
    assert [each.wait(60) for each in starts] == [0] * 20
    eventually((place / "started").exists)
    assert len((place / "started").read_text().split()) == 1
    assert len(_of(state_dir, "service")) == 1
    assert len(_of(state_dir, "supervisor")) == 1


def test_many_starts_at_once_under_many_names_all_start(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    starts = [
        track.spawn(
            [*COMMAND, "run", "--detach", "--name", f"n{n}", "--port", f"p{n}", "--", *_SLEEP],
            cwd=place, stdout=subprocess.DEVNULL,
        )
        for n in range(20)
    ]  # fmt: skip
    assert [each.wait(60) for each in starts] == [0] * 20
    assert len(set(_of(state_dir, "service"))) == 20
    assert len(set(ask(place, "status")["environment"]["ports"].values())) == 20
    report = ask(place, "reap")
    # a supervisor whose service was ended may be gone before it is its turn
    assert len(report["removed"] + report["already_gone"]) == 40
    assert recorded(state_dir) == []


def test_the_end_of_a_service_is_noticed_written_down_and_leaves_no_record(
    place: Path, state_dir: Path
) -> None:
    start(place, "sh", "-c", "exit 7", name="job")
    eventually(lambda: recorded(state_dir) == [])
    lines = [e for e in ask(place, "events")["events"] if e["action"] == "ended"]
    assert [(e["name"], e["detail"]) for e in lines] == [("job", "exit status 7")]


def test_what_is_not_there_is_127_and_leaves_nothing(place: Path, state_dir: Path) -> None:
    done = corral(place, "run", "--detach", "--", "no-such-program", check=127)
    assert "no-such-program: command not found" in done.err
    eventually(lambda: recorded(state_dir) == [])


def test_the_supervisor_stays_until_the_whole_tree_is_gone(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    daemon = "env -i setsid sleep 601 </dev/null >/dev/null 2>&1 &"
    start(place, "sh", "-c", f"{daemon} exit 0", name="job")
    (pid,) = eventually(lambda: _of(state_dir, "descendant"))
    assert _of(state_dir, "service") == []
    (supervisor,) = _of(state_dir, "supervisor")
    assert alive(supervisor)
    assert ask(place, "run", "--name", "job", "--detach", "--", "true")["already"]
    os.kill(track.pid(pid), signal.SIGKILL)
    eventually(lambda: not alive(supervisor))
    assert recorded(state_dir) == []


def _below(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def test_a_daemon_that_is_born_while_the_service_lives_is_recorded_soon(
    place: Path, state_dir: Path
) -> None:
    daemon = "(env -i setsid sh -c 'sleep 601; true' </dev/null >/dev/null 2>&1 &)"
    pid = start(place, "sh", "-c", f"{daemon}; exec sleep 600", name="job")
    eventually(lambda: _of(state_dir, "descendant"))
    assert _of(state_dir, "service") == [pid]


def test_what_wiped_its_environment_is_still_known_when_its_whole_tree_is_killed(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    """It stands below the service, so no child of the supervisor's own changes."""
    pid = start(place, "sh", "-c", "env -i setsid sleep 601 & wait", name="job")
    (daemon,) = eventually(lambda: _of(state_dir, "descendant"))
    (supervisor,) = _of(state_dir, "supervisor")
    for each in (supervisor, pid):
        track.pid(each)
        os.kill(each, signal.SIGKILL)
    eventually(lambda: not alive(supervisor) and not alive(pid))
    assert alive(track.pid(daemon))
    assert str(daemon) in [r["id"] for r in ask(place, "reap")["removed"]]
    assert not alive(daemon)


def test_when_the_supervisor_is_killed_the_service_is_still_known(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    pid = start(place, *_SLEEP, name="job")
    (supervisor,) = _of(state_dir, "supervisor")
    track.pid(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not alive(supervisor))
    assert alive(pid)
    assert ask(place, "run", "--name", "job", "--detach", "--", "true")["pid"] == pid
    assert [r["id"] for r in ask(place, "stop", "job")["removed"]] == [str(pid)]
    assert not alive(pid)
    assert recorded(state_dir) == []


def test_a_supervisor_that_is_told_to_end_ends_the_tree(place: Path, state_dir: Path) -> None:
    pid = start(place, "sh", "-c", "sleep 601 & sleep 602; true", name="job")
    (supervisor,) = _of(state_dir, "supervisor")
    eventually(lambda: len(_below(pid)) == 2)
    tree = [pid, *_below(pid)]
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: not any(alive(each) for each in (*tree, supervisor)))
    assert recorded(state_dir) == []


def test_ports_are_held_as_long_as_the_service_lives(place: Path) -> None:
    found = ask(place, "run", "--detach", "--name", "job", "--port", "web", "--", *_SLEEP)
    port = found["ports"]["web"]
    for address in ("127.0.0.1", "0.0.0.0"):
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind((address, port))
    assert corral(place, "stop", "job").status == 0
    with socket.socket() as anybody:
        anybody.bind(("127.0.0.1", port))


def test_the_end_of_the_owners_anchor_is_written_down_at_once(
    place: Path, state_dir: Path, track: Tracker
) -> None:
    anchor = track.spawn(_SLEEP)
    corral(place, "session", "start", "--session", "s", "--anchor", str(anchor.pid))
    start(place, *_SLEEP, name="job", env={"CORRAL_SESSION": "s"})
    assert _ends(state_dir) == [None]
    anchor.kill()
    anchor.wait()
    killed = time.clock_gettime(time.CLOCK_BOOTTIME)
    (end,) = eventually(lambda: [e for e in _ends(state_dir) if e])
    assert abs(end["boottime"] - killed) < 2


def _ends(state_dir: Path) -> list[Any]:
    import json
    import sqlite3

    conn = sqlite3.connect(state_dir / "registry.sqlite3")
    try:
        rows = conn.execute('SELECT "end" FROM epoch').fetchall()
    finally:
        conn.close()
    return [_plain(json.loads(text)) if text else None for (text,) in rows]


def _plain(found: Any) -> dict[str, Any]:
    if isinstance(found, dict):
        return found
    if found and not isinstance(found[0], list):
        return {"boottime": found[0]}
    return dict(found)


def test_one_service_ends_and_another_of_the_same_program_goes_on(place: Path) -> None:
    one, two = (start(place, *_SLEEP, name=name) for name in ("one", "two"))
    report = ask(place, "stop", "one")
    assert {r["id"] for r in report["removed"]} >= {str(one)}
    assert not alive(one)
    assert alive(two)


def test_stopping_takes_the_whole_tree_down(place: Path, state_dir: Path) -> None:
    stubborn = "trap '' TERM; sleep 603 & sleep 604 & sleep 605; true"
    pid = start(place, "sh", "-c", stubborn, name="job")
    eventually(lambda: len(_below(pid)) == 3)
    tree = [pid, *_below(pid)]
    report = ask(place, "stop", "job")
    assert report["remaining"] == []
    assert {int(r["id"]) for r in report["removed"]} >= set(tree)
    assert not any(alive(each) for each in tree)
    assert recorded(state_dir) == []
    assert _of(state_dir, "supervisor") == []


def test_stopping_twice_is_no_error_and_an_unknown_name_is(place: Path) -> None:
    start(place, *_SLEEP, name="job")
    corral(place, "stop", "job")
    again = corral(place, "stop", "job")
    assert "job does not run" in again.err
    unknown = corral(place, "stop", "jobs", check=2)
    assert "nothing is called jobs" in unknown.err


def test_another_workers_service_is_not_stopped_without_force(place: Path) -> None:
    pid = start(place, *_SLEEP, name="job", env={"CORRAL_SESSION": "one"})
    done = corral(place, "stop", "job", env={"CORRAL_SESSION": "two"}, check=4)
    assert "another worker" in done.err
    assert alive(pid)
    corral(place, "stop", "job", "--force", env={"CORRAL_SESSION": "two"})
    assert not alive(pid)


def test_json_tells_what_was_started(place: Path) -> None:
    found = ask(place, "run", "--detach", "--name", "job", "--port", "web", "--", *_SLEEP)
    assert set(found) == {
        "name", "record", "pid", "ports", "url", "log", "already", "ready", "exit_status",
    }  # fmt: skip
    assert found["url"] == f"http://127.0.0.1:{found['ports']['web']}"
    assert found["log"].endswith("/logs/job.log")
    assert (found["already"], found["ready"], found["exit_status"]) == (False, None, None)
    assert alive(found["pid"])


def test_a_wide_environment_and_odd_words_arrive_whole(place: Path) -> None:
    words = ["a b", "", "--", "$X", "日本", "\n"]
    program = "import os, sys; print(sys.argv[1:], len(os.environ['WIDE']))"
    start(place, sys.executable, "-c", program, *words, name="job", env={"WIDE": "x" * 100_000})
    eventually(lambda: _log(place, "job"))
    assert _log(place, "job") == f"{words} 100000\n"


def test_a_port_stays_held_while_its_server_restarts(place: Path, track: Tracker) -> None:
    program = (
        "import os, socket; s = socket.socket(); "
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
        "s.bind(('127.0.0.1', int(os.environ['PORT']))); s.listen(); "
        "open('pid', 'w').write(f'{os.getpid()}\\n'); s.accept()"
    )
    (place / "serve.py").write_text(program)
    loop = f"while :; do {sys.executable} serve.py; done"
    options = ("--detach", "--name", "web", "--port", "web", "--wait-ready", "20")
    port = ask(place, "run", *options, "--", "sh", "-c", loop)["ports"]["web"]
    seen: set[int] = set()
    for _ in range(5):
        pid = eventually(lambda: _new_pid(place, seen))
        seen.add(pid)
        os.kill(track.pid(pid), signal.SIGKILL)
        # from here on nobody listens; a stranger that names the port is still kept out
        while not _new_pid(place, seen):
            with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
                stranger.bind(("127.0.0.1", port))


def _new_pid(place: Path, seen: set[int]) -> int:
    text = (place / "pid").read_text()
    return int(text) if text.endswith("\n") and int(text) not in seen else 0


def test_a_udp_port_is_given_and_not_held(place: Path) -> None:
    (place / "corral.toml").write_text('[ports]\ndns = { protocol = "udp" }\n')
    found = ask(place, "run", "--detach", "--name", "dns", "--port", "dns", "--", *_SLEEP)
    with socket.socket(type=socket.SOCK_DGRAM) as anybody:
        anybody.bind(("127.0.0.1", found["ports"]["dns"]))


def test_an_address_of_its_own_is_where_a_service_is_held_and_ready(place: Path) -> None:
    corral(place, "up", "--address", "--port", "web")
    environment = ask(place, "status")["environment"]
    address, port = environment["address"], environment["ports"]["web"]
    server = (sys.executable, "-m", "http.server", "--bind", "{host}", "{port}")
    found = ask(place, "run", "--detach", "--name", "web", "--wait-ready", "20", "--", *server)
    assert found["url"] == f"http://{address}:{port}"
    socket.create_connection((address, port), timeout=5).close()


def test_two_services_of_one_environment_run_beside_each_other(place: Path) -> None:
    server = (sys.executable, "-m", "http.server", "--bind", "{host}", "{port}")
    options = ("--detach", "--wait-ready", "20")
    one, two = (
        ask(place, "run", *options, "--name", name, "--port", name, "--", *server)
        for name in ("one", "two")
    )
    corral(place, "stop", "one")
    assert not alive(one["pid"])
    socket.create_connection(("127.0.0.1", two["ports"]["two"]), timeout=5).close()


def test_a_service_that_a_service_started_is_one_of_its_own(place: Path, state_dir: Path) -> None:
    inner = f"{' '.join(COMMAND)} run --detach --name inner -- sh -c 'sleep 601 & sleep 602'"
    start(place, "sh", "-c", f"{inner}; until [ -e go ]; do sleep 0.02; done", name="outer")
    eventually(lambda: len(_of(state_dir, "service")) == 2)
    eventually(lambda: len(_of(state_dir, "supervisor")) == 2)
    (place / "go").touch()
    eventually(lambda: _names(state_dir) == {"inner"})
    assert not ask(place, "run", "--detach", "--name", "outer", "--", *_SLEEP)["already"]
    corral(place, "stop", "outer")
    assert _names(state_dir) == {"inner"}
    assert len(ask(place, "stop", "inner")["removed"]) >= 3
    assert recorded(state_dir) == []


def test_the_end_of_a_supervisor_leaves_a_service_that_its_own_started(
    place: Path, state_dir: Path
) -> None:
    inner = f"{' '.join(COMMAND)} run --detach --name inner -- sleep 602"
    start(place, "sh", "-c", f"{inner}; exec sleep 600", name="outer")
    eventually(lambda: len(_of(state_dir, "service")) == 2)
    (outer,) = (
        r["identity"]["pid"]
        for r in recorded(state_dir)
        if r["role"] == "supervisor" and r["name"] == "outer"
    )
    os.kill(outer, signal.SIGTERM)
    eventually(lambda: _names(state_dir) == {"inner"})
    (pid,) = _of(state_dir, "service")
    assert alive(pid)


def _names(state_dir: Path) -> set[str]:
    return {r["name"] for r in recorded(state_dir)}
