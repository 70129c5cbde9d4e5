"""The user's command is executed only once it was let go, and as if Python had never been there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.processes import Tracker

# Forks run in a process of their own: a test's process has threads.
_START = """
import os, sys
from corral.kernel import signals, spawn
inherited = signals.watch()
command = spawn.Command(tuple(sys.argv[1:]), dict(os.environ))
waiting = spawn.fork_waiting(command, inherited)
try:
    waiting.release()
except spawn.ExecError as error:
    print(error)
    sys.exit(error.exit_status)
code = os.waitstatus_to_exitcode(os.waitpid(waiting.pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
"""

_WAIT = """
import os, sys
from corral.kernel import signals, spawn
command = spawn.Command(tuple(sys.argv[1:]), dict(os.environ))
waiting = spawn.fork_waiting(command, signals.watch())
print(waiting.pid, flush=True)
sys.stdin.read()
waiting.abandon()
"""


def _start(*argv: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _START, *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        **options,
    )


def _script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_command_is_found_on_path_and_gets_its_words() -> None:
    done = _start("printf", "%s|", "a b", "", "$x")
    assert (done.stdout, done.returncode) == ("a b||$x|", 0)


@pytest.mark.parametrize("status", [0, 1, 3, 255])
def test_the_exit_status_is_the_commands(status: int) -> None:
    assert _start("sh", "-c", f"exit {status}").returncode == status


def test_what_is_not_there_is_127_and_says_so() -> None:
    done = _start("no-such-program-anywhere")
    assert done.returncode == 127
    assert "no-such-program-anywhere: command not found" in done.stdout


def test_what_may_not_be_executed_is_126(private_root: Path) -> None:
    plain = _script(private_root / "plain", "echo hello\n", mode=0o644)
    done = _start(plain)
    assert done.returncode == 126
    assert "Permission denied" in done.stdout


def test_a_directory_is_126(private_root: Path) -> None:
    assert _start(private_root).returncode == 126


def test_a_missing_interpreter_is_126_and_is_not_called_a_missing_command(
    private_root: Path,
) -> None:
    done = _start(_script(private_root / "odd", "#!/no/such/interpreter\n"))
    assert done.returncode == 126
    assert "interpreter" in done.stdout


def test_a_script_without_a_first_line_is_run_by_the_shell(private_root: Path) -> None:
    done = _start(_script(private_root / "script", 'echo "$0 $1"\n'), "word")
    assert done.stdout == f"{private_root}/script word\n"


def test_a_name_that_may_not_be_executed_in_one_place_is_found_in_the_next(
    private_root: Path,
) -> None:
    for name in ("one", "two"):
        (private_root / name).mkdir()
    _script(private_root / "one/tool", "", mode=0o644)
    _script(private_root / "two/tool", "#!/bin/sh\necho two\n")
    path = f"{private_root}/one:{private_root}/two:{os.environ['PATH']}"
    assert _start("tool", env={**os.environ, "PATH": path}).stdout == "two\n"


def test_a_command_that_waits_has_executed_nothing(private_root: Path, track: Tracker) -> None:
    made = private_root / "made"
    driver = track.spawn(
        [sys.executable, "-c", _WAIT, "touch", made],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    assert int(driver.stdout.readline()) > 0
    _, _ = driver.communicate("")
    assert driver.returncode == 0
    assert not made.exists()


def test_when_corral_is_killed_first_the_command_never_runs(
    private_root: Path, track: Tracker
) -> None:
    made = private_root / "made"
    driver = track.spawn(
        [sys.executable, "-c", _WAIT, "touch", made],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    child = track.pid(int(driver.stdout.readline()))
    driver.kill()
    eventually(lambda: not os.path.exists(f"/proc/{child}"))
    assert not made.exists()


def test_signals_are_as_a_program_expects_them() -> None:
    look = ("grep", "-E", "Sig(Blk|Ign|Cgt):", "/proc/self/status")
    outside = subprocess.run(look, capture_output=True, text=True, check=True)
    assert _signals(_start(*look).stdout) == _signals(outside.stdout)


def _signals(status: str) -> list[int]:
    """The masks without libc's own two signals, which depend on how a program was started."""
    own = 0b11 << 31
    return [int(line.split()[1], 16) & ~own for line in status.splitlines()]


def test_what_the_caller_ignored_stays_ignored() -> None:
    ignoring = "trap '' HUP INT; exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", ignoring, "sh", sys.executable, "-c", _START,
         "grep", "SigIgn:", "/proc/self/status"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    mask = int(done.stdout.split()[1], 16)
    assert mask >> (signal.SIGHUP - 1) & 1
    assert mask >> (signal.SIGINT - 1) & 1
    assert not mask >> (signal.SIGTERM - 1) & 1


def test_a_writer_to_a_closed_pipe_is_ended_by_the_signal() -> None:
    done = _start("bash", "-c", 'yes | head -n 1; echo "${PIPESTATUS[0]}"')
    assert done.stdout == "y\n141\n"


def test_the_callers_own_descriptors_stay_open_in_the_foreground() -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        done = _start("bash", "-c", f"echo through >&{write}", pass_fds=(write,))
        assert done.returncode == 0
        assert os.read(read, 100) == b"through\n"
    finally:
        os.close(read)
        os.close(write)


def test_corrals_own_descriptors_are_not_passed_on() -> None:
    assert sorted(_start("ls", "/proc/self/fd").stdout.split()) == ["0", "1", "2", "3"]


_HAND_OVER = """
import os, socket, sys
from corral.kernel import signals, spawn
one, two = socket.socket(), socket.socket()
for each in (one, two):
    each.bind(("127.0.0.1", 0))
print(one.getsockname()[1], two.getsockname()[1], flush=True)
output = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
inherited = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(inherited, True)
handed = (("web", two.fileno()), ("api", one.fileno()))
command = spawn.Command(tuple(sys.argv[2:]), dict(os.environ), handed, output, detached=True)
waiting = spawn.fork_waiting(command, signals.watch())
waiting.release()
print(waiting.pid, os.waitpid(waiting.pid, 0)[1])
"""

_RECEIVE = """
import os, socket
print(os.environ["LISTEN_FDS"], os.environ["LISTEN_FDNAMES"])
print(os.environ["LISTEN_PID"] == str(os.getpid()))
given = [socket.socket(fileno=fd) for fd in (3, 4)]
print(*(each.getsockname()[1] for each in given))
print(os.getsid(0) == os.getpid(), os.read(0, 1))
print(*sorted(map(int, os.listdir("/dev/fd")))[:-1])
"""


def test_a_detached_command_gets_its_sockets_its_log_and_nothing_else(private_root: Path) -> None:
    log = private_root / "log"
    done = subprocess.run(
        [sys.executable, "-c", _HAND_OVER, log, sys.executable, "-c", _RECEIVE],
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    one, two = done.stdout.splitlines()[0].split()
    assert log.read_text().splitlines() == [
        "2 web:api",
        "True",
        f"{two} {one}",
        "True b''",
        "0 1 2 3 4",
    ]


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- 2>&-"])
def test_closed_standard_descriptors_confuse_nobody(private_root: Path, closed: str) -> None:
    made = private_root / "made"
    subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", _START,
         "sh", "-c", 'echo ran > "$0"', made],
        check=True, timeout=30,
    )  # fmt: skip
    assert made.read_text() == "ran\n"


_REFUSED = """
import os
from corral.errors import InvalidValueError
from corral.kernel import signals, spawn
inherited = signals.watch()
for argv, environ in (((), {}), (("",), {}), (("a\\0b",), {}), (("a",), {"K": "\\0"})):
    try:
        spawn.fork_waiting(spawn.Command(argv, environ), inherited)
    except InvalidValueError as error:
        print("refused")
"""


def test_words_that_no_program_can_be_given_are_refused_before_the_fork() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _REFUSED], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout == "refused\n" * 4


def test_too_many_words_are_an_error_with_a_reason() -> None:
    program = _START.replace("tuple(sys.argv[1:])", "('true', *['x' * 100_000] * 100)")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 126
    assert "too long" in done.stdout.lower()


_THREADED = """
import os, threading, warnings
warnings.simplefilter("error")
from corral.kernel import signals, spawn
done = threading.Event()
threading.Thread(target=done.wait).start()
waiting = spawn.fork_waiting(spawn.Command(("echo", "started"), dict(os.environ)), signals.watch())
waiting.release()
os.waitpid(waiting.pid, 0)
done.set()
"""


def test_a_program_with_threads_can_start_a_command_without_a_warning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _THREADED], capture_output=True, text=True, check=True, timeout=30
    )
    assert (done.stdout, done.stderr) == ("started\n", "")
