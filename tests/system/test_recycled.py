"""A pid that was given to another process, on demand, in a pid namespace of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.engines import require_engine
from support.programs import in_pid_namespace, program, said

if TYPE_CHECKING:
    from pathlib import Path

_STORY = """
def corral(*words):
    argv = [sys.executable, "-m", "corral.cli.main", *words, "--json"]
    if "--" in words:
        at = words.index("--")
        argv = [sys.executable, "-m", "corral.cli.main", *words[:at], "--json", *words[at:]]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return done.returncode, json.loads(done.stdout)["data"]

os.chdir(WHERE)
_, started = corral("run", "--detach", "--name", "web", "--", "sleep", "600")
pid = started["pid"]
_, seen = corral("status")
(supervisor,) = [int(r["id"]) for r in seen["owned"] if r["state"] == "supervisor"]
for victim in (supervisor, pid):
    os.kill(victim, signal.SIGKILL)
while True:
    try:
        if os.waitpid(-1, os.WNOHANG)[0] == 0 and not os.path.exists(f"/proc/{pid}"):
            break
    except ChildProcessError:
        break
stranger = reborn(pid, sleep)
code, report = corral(*COMMAND)
alive = os.path.exists(f"/proc/{stranger}") and os.waitpid(stranger, os.WNOHANG) == (0, 0)
removed = [r["id"] for r in report["removed"]]
end(stranger)
say({"same": stranger == pid, "alive": alive, "code": code, "removed": removed})
"""


@pytest.mark.parametrize("command", [("reap",), ("cleanup", "--yes"), ("down",), ("stop", "web")])
def test_a_stranger_with_a_recorded_pid_is_left_alone(
    git_repo: Path, command: tuple[str, ...]
) -> None:
    require_engine("namespaces")
    source = f"WHERE, COMMAND = {str(git_repo)!r}, {command!r}\n" + _STORY
    if command[0] == "stop":
        source = source.replace("code, report = corral(*COMMAND)", _STOP)
    told = said(in_pid_namespace(program(source)))
    assert told["same"], "the kernel did not give the pid again"
    assert told["alive"]
    assert [r for r in told["removed"] if r.isdigit()] == []


_STOP = """code, report = 0, {"removed": []}
subprocess.run([sys.executable, "-m", "corral.cli.main", *COMMAND], stderr=subprocess.DEVNULL)"""
