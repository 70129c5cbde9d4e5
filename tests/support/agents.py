"""Coding agents as corral meets them: a process of their own, hooks, and shells below it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from support.command import COMMAND, alive
from support.processes import carrying, in_exec
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.processes import Tracker

HOOK = (sys.executable, "-m", "corral.cli.hook")
# Gives a hook its time, then ends its whole process group, as an agent does.
_KILLER = """
import os, signal, subprocess, sys
hook = subprocess.Popen(sys.argv[2:], stdin=0, start_new_session=True)
try:
    hook.wait(float(sys.argv[1]))
except subprocess.TimeoutExpired:
    os.killpg(hook.pid, signal.SIGKILL)
    hook.wait()
"""
_END_SECONDS = 1.5  # what an agent gives all its hooks at a session's end
_PROGRAM = Path(__file__).parent / "agent_program.py"


class Ran(NamedTuple):
    """What a program that the agent ran left."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The `data` of a corral command's JSON document."""
        found: dict[str, Any] = json.loads(self.out)["data"]
        return found


class Agent:
    """One running stand-in for an agent, in one conversation.

    `kind`: what its program is called, and the argument of its hook. `pid_variable`: whether it
    tells its children its own process id. `inside`: the agent whose shell starts this one, else it
    is started by the test; `how` is then put before the command (as `nohup`, `setsid`).
    `environ`: more variables for its children.
    """

    def __init__(
        self,
        track: Tracker,
        root: Path,
        session: str,
        cwd: Path,
        *,
        kind: str = "claude",
        pid_variable: bool = True,
        inside: Agent | None = None,
        how: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.session, self.cwd, self.kind = session, cwd, kind
        self._number = len(list(root.glob("agent-*")))
        self._home = root / f"agent-{self._number}"
        self._home.mkdir()
        self.variables_file = self._home / "variables.sh"
        self._socket = str(self._home / "s")
        program = self._home / kind
        shutil.copy(_PROGRAM, program)
        variables = {
            **(environ or {}),
            "CLAUDE_ENV_FILE": str(self.variables_file),
            "pid_variable": pid_variable,
        }
        argv = [*how, sys.executable, str(program), self._socket, json.dumps(variables)]
        if inside is None:
            track.spawn(argv, cwd=cwd)
        else:
            inside.shell(f"{shlex.join(argv)} </dev/null >/dev/null 2>&1 &", cwd=cwd)
        eventually(lambda: os.path.exists(self._socket), message="the agent listens")
        self.pid = track.pid(int(Path(f"{self._socket}.pid").read_text()))

    def _ask(self, **request: Any) -> dict[str, Any]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(self._socket)
            with connection.makefile("rwb") as file:
                file.write(json.dumps(request).encode() + b"\n")
                file.flush()
                found: dict[str, Any] = json.loads(file.readline())
        return found

    def run(self, *argv: str, cwd: Path | None = None, **options: Any) -> Ran:
        """Run a program as the agent's child and wait for it."""
        where = str(cwd or self.cwd)
        env = {"CLAUDE_CODE_SESSION_ID": self.session, **options.pop("env", {})}
        return Ran(**self._ask(argv=argv, cwd=where, env=env, **options))

    def payload(self, event: str, **fields: Any) -> str:
        """What the agent writes to its hooks."""
        common = {"session_id": self.session, "cwd": str(self.cwd), "transcript_path": "/t.jsonl"}
        return json.dumps({**common, "hook_event_name": event, **fields})

    def start(self, source: str = "startup", **fields: Any) -> Ran:
        """The hook of a session that starts."""
        return self._hook(self.payload("SessionStart", source=source, **fields))

    def end(self, reason: str = "other", **fields: Any) -> Ran:
        """The hook of a session that ends; the agent itself goes on."""
        return self._hook(self.payload("SessionEnd", reason=reason, **fields))

    def quit(self, reason: str = "other") -> None:
        """End the session as an agent does: the hook has 1.5 s and is killed, the agent exits."""
        argv = killed_after(_END_SECONDS, self.kind)
        self.run(*argv, input=self.payload("SessionEnd", reason=reason))
        os.kill(self.pid, signal.SIGKILL)
        eventually(lambda: not alive(self.pid), 30)

    def _hook(self, payload: str) -> Ran:
        done = self.run(*HOOK, self.kind, input=payload)
        assert done.status == 0, done
        return done

    def shell(self, command: str, cwd: Path | None = None) -> Ran:
        """A command of the agent's shell tool, with the variables that hooks gave it."""
        source = f"[ -e {self.variables_file} ] && . {self.variables_file}\n"
        done = self.run("bash", "-c", source + command, cwd=cwd)
        assert done.status == 0, done
        return done

    def corral(self, *words: str, cwd: Path | None = None) -> dict[str, Any]:
        """`corral WORDS --json` in the agent's shell; its data."""
        own, _, rest = " ".join(map(shlex.quote, words)).partition(" -- ")
        tail = f" -- {rest}" if rest else ""
        return self.shell(f"{shlex.join(COMMAND)} {own} --json{tail}", cwd=cwd).data

    def server(self, *argv: str, name: str = "", cwd: Path | None = None) -> int:
        """`corral run --detach`; the pid of what was started."""
        words = ["run", "--detach", *(["--name", name] if name else [])]
        return int(self.corral(*words, "--", *argv, cwd=cwd)["pid"])

    def background(self, command: str, cwd: Path | None = None) -> int:
        """A command that the agent's shell leaves in the background; its pid."""
        return int(self.shell(f"{command} </dev/null >/dev/null 2>&1 & echo $!", cwd=cwd).out)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the hooks gave to the agent's shells."""
        names = [
            line.partition("=")[0].removeprefix("export ")
            for line in self.variables_file.read_text().splitlines()
        ]
        shown = self.shell("; ".join(f'printf "%s\\0" "${name}"' for name in names)).out
        return dict(zip(names, shown.split("\0"), strict=False))


def killed_after(seconds: float, kind: str = "claude") -> tuple[str, ...]:
    """The argv of a hook that is killed after that time, if it lives then."""
    return (sys.executable, "-c", _KILLER, str(seconds), *HOOK, kind)


def settle(*ended: int) -> None:
    """Wait until what hooks have handed over is done, and these processes have ended."""
    spool = Path(os.environ["CORRAL_STATE_DIR"], "spool")
    eventually(lambda: not any(map(alive, ended)), 60, f"the end of {ended}")
    eventually(lambda: not list(spool.glob("*.json")), 60, "the spool to be taken in")
    handed_over()


def handed_over() -> None:
    """Wait until no hook runs, nor what one has handed over to."""
    # What was between two programs at the first look shows at the second whose it is.
    for _ in range(2):
        eventually(
            lambda: not (list(other_halves()) or list(in_exec())),
            90,
            "the other halves of hooks to end",
        )


def other_halves() -> Iterator[int]:
    """The pids of hooks of this test, and of what they have handed over to."""
    for pid in carrying("CORRAL_STATE_DIR", os.environ["CORRAL_STATE_DIR"]):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
        if b"corral.cli.hook" in argv:  # also one that was only just forked
            yield pid
