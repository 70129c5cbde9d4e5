"""The only door to other programs: time limit, output limit, no shell, nothing left behind.

Every program runs in a session of its own, reads nothing, and is killed with its process group
when its time is over. The group is signalled only while its leader has not been waited for, so
its number cannot have been given to another group.
"""

from __future__ import annotations

import os
import signal
import time

from corral.errors import CorralError, EnumerationError
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from selectors import BaseSelector, SelectorKey
    from socket import socket
    from typing import Any

OUTPUT_LIMIT = 32 * 1024 * 1024
_CHUNK = 65536
_TICK = 0.05  # seconds between looks at a child where there is no pidfd
_STRAGGLERS = 0.25  # seconds in which what still holds the pipes may finish writing


class ProgramMissingError(CorralError):
    """The program is not installed, or may not be executed."""

    code = "program-missing"


class CommandTimeoutError(EnumerationError):
    """The program did not end within its time; it was killed."""


class OutputLimitError(EnumerationError):
    """The program wrote more than anybody would read; it was killed."""


class Completed(NamedTuple):
    """What a program that ended left: `returncode` is negative for a signal, as in subprocess."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def last_line(self) -> str:
        """The last words on stderr, else on stdout: what a program says of its failure."""
        for text in (self.stderr, self.stdout):
            lines = text.strip().splitlines()
            if lines:
                return lines[-1].strip()
        return ""


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    limit: int = OUTPUT_LIMIT,
) -> Completed:
    """Run `argv` to its end, at most `timeout` seconds, and return its code and output.

    `env` replaces the environment (None: this process's own). `limit` is in bytes, for each of
    stdout and stderr; undecodable bytes are replaced.
    Raises ProgramMissingError, CommandTimeoutError or OutputLimitError.
    """
    import subprocess

    process = _start(argv, env, cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watch = _Watch(process, argv[0], timeout, limit)
    try:
        stdout, stderr = watch.read()
    except BaseException:  # whatever ended the wait, also Ctrl-C: the program must not stay
        _kill(process)
        raise
    finally:
        watch.close()
        process.wait()
    return Completed(process.returncode, stdout, stderr)


class Stream:
    """A program whose stdin and stdout are `socket`. Close it, or the program stays."""

    def __init__(self, connection: socket, process: subprocess.Popen[bytes]) -> None:
        self.socket = connection
        self.process = process

    def complaint(self) -> str:
        """The last line the program wrote to stderr so far, or ""; never waits."""
        stream = self.process.stderr
        if stream is None:
            return ""
        os.set_blocking(stream.fileno(), False)
        text = (stream.read() or b"").decode("utf-8", "replace").strip()
        return text.splitlines()[-1].strip() if text else ""

    def close(self) -> None:
        """Close the socket and end the program with all of its process group."""
        self.socket.close()
        _kill(self.process)
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


def connect(argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Stream:
    """Start `argv` with a socket as its stdin and stdout. Raises ProgramMissingError."""
    import socket
    import subprocess

    ours, theirs = socket.socketpair()
    try:
        process = _start(argv, env, None, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
    except ProgramMissingError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Stream(ours, process)


def _start(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    **streams: int | socket,
) -> subprocess.Popen[bytes]:
    import subprocess

    standard: dict[str, Any] = {"stdin": subprocess.DEVNULL, **streams}
    try:
        return subprocess.Popen(
            list(argv),
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
            **standard,
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        if cwd is not None and not os.path.isdir(cwd):
            raise EnumerationError(f"the directory {cwd} of {argv[0]} is not there") from error
        raise ProgramMissingError(
            f"{argv[0]} cannot be run: {error.strerror}",
            remedy=f"install {os.path.basename(argv[0])}, or put it on PATH",
        ) from error


class _Watch:
    """Reads what a program writes until it has ended, and no longer than its time."""

    def __init__(
        self, process: subprocess.Popen[bytes], name: str, timeout: float, limit: int
    ) -> None:
        self._process = process
        self._name = name
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._limit = limit
        self._pidfd = _pidfd(process.pid)

    def read(self) -> tuple[str, str]:
        """What was written to stdout and stderr; returns when the program has ended."""
        import selectors

        pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]
        texts = [bytearray() for _ in pipes]
        with selectors.DefaultSelector() as selector:
            for pipe, text in zip(pipes, texts, strict=True):
                selector.register(pipe, selectors.EVENT_READ, text)
            if self._pidfd is not None:
                selector.register(self._pidfd, selectors.EVENT_READ)
            while not _exited(self._process.pid):
                for key, _ in selector.select(self._pause()):
                    self._take(selector, key)
            self._drain(selector)
        stdout, stderr = (text.decode("utf-8", "replace") for text in texts)
        return stdout, stderr

    def close(self) -> None:
        """Close the pipes and the pidfd."""
        if self._pidfd is not None:
            os.close(self._pidfd)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _pause(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise CommandTimeoutError(f"{self._name} did not end within {self._timeout:g} s")
        return left if self._pidfd is not None else min(left, _TICK)

    def _take(self, selector: BaseSelector, key: SelectorKey) -> None:
        """Read one chunk of a pipe; forget a pipe at its end, and the pidfd of an ended child."""
        chunk = b"" if key.data is None else os.read(key.fd, _CHUNK)
        if not chunk:
            selector.unregister(key.fileobj)
            return
        key.data.extend(chunk)
        if len(key.data) > self._limit:
            raise OutputLimitError(f"{self._name} wrote more than {self._limit} bytes")

    def _drain(self, selector: BaseSelector) -> None:
        """Read the rest, for a moment only: a child of the program may hold a pipe for ever."""
        until = time.monotonic() + _STRAGGLERS
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                self._take(selector, key)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # another platform, or a kernel without pidfd
        return None


def _exited(pid: int) -> bool:
    """Whether our own child has ended, leaving it to be waited for (its pid stays taken)."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group, unless its leader was waited for and its number may be another's."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # nothing of the group is left
        return
    except PermissionError:  # macOS says so of a group of zombies
        return
