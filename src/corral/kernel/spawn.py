"""Start the user's own command in two steps: fork, and exec only once it has been recorded.

The child waits on a pipe. One byte lets it go on to exec; the end of the pipe, which also comes
when this process is killed, lets it leave without having done anything. Whether the exec worked
comes back through a second pipe, which the exec itself closes.
"""

from __future__ import annotations

import errno
import fcntl
import os

from corral.errors import InvalidValueError, RunError
from corral.kernel import signals, subreaper
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

EXIT_NOT_FOUND = 127
EXIT_NOT_EXECUTABLE = 126
_EXIT_ABANDONED = 125
FIRST_HANDED = 3  # SD_LISTEN_FDS_START of sd_listen_fds(3)
_GO = b"g"
_FALLBACK_SHELL = "/bin/sh"  # what execvp(3) runs a file without a recognised header with


class Command(NamedTuple):
    """What is to be started, and with what.

    `environ`: all of its variables. `handed`: (name, descriptor) of the sockets that it gets as
    descriptors 3, 4, ..., announced by LISTEN_FDS. `output`: a descriptor for stdout and stderr,
    with stdin empty; None leaves the three standard ones alone. `detached`: in a session of its
    own, without any other descriptor; else the caller's own descriptors stay open.
    `death_signal`: sent to it when this process dies (Linux; a setuid program does not get it).
    """

    argv: tuple[str, ...]
    environ: Mapping[str, str]
    handed: tuple[tuple[str, int], ...] = ()
    output: int | None = None
    detached: bool = False
    death_signal: int = 0


class ExecError(RunError):
    """The command cannot be executed; `exit_status` is 127 (not found) or 126, as in a shell."""

    code = "not-executable"

    def __init__(self, program: str, number: int) -> None:
        missing = number in {errno.ENOENT, errno.ENOTDIR}
        if missing:
            reason, remedy = "command not found", "check the spelling and PATH"
        elif number == errno.ENOEXEC:
            reason = "cannot be executed: its interpreter is missing, or of another machine"
            remedy = "see its first line"
        else:
            reason, remedy = f"cannot be executed: {os.strerror(number)}", "see its permissions"
        super().__init__(f"{program}: {reason}", remedy=remedy)
        self.errno = number
        self.exit_status = EXIT_NOT_FOUND if missing else EXIT_NOT_EXECUTABLE


class Waiting:
    """A forked child that has not executed anything yet."""

    def __init__(self, pid: int, program: str, go: int, report: int) -> None:
        self.pid = pid
        self._program = program
        self._go = go
        self._report = report

    def release(self) -> None:
        """Let it execute its command; ExecError when that fails (the child has ended then)."""
        try:
            os.write(self._go, _GO)
            words = os.read(self._report, 16)
        except BrokenPipeError:
            # It was killed while it waited: nothing was executed, its exit status tells by what.
            return
        finally:
            os.close(self._go)
            os.close(self._report)
        if words:
            os.waitpid(self.pid, 0)
            raise ExecError(self._program, int(words))

    def abandon(self) -> None:
        """Let it end without having executed anything."""
        os.close(self._go)
        os.close(self._report)
        os.waitpid(self.pid, 0)


def fork_waiting(command: Command, inherited: signals.Inherited) -> Waiting:
    """Fork the child of `command`. It gets back the signal state in `inherited` when it goes.

    Raises InvalidValueError for words that no program can be given, RunError without resources.
    """
    _check(command)
    go_read, go_write = os.pipe()
    report_read, report_write = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(go_write)
        os.close(report_read)
        _become(command, inherited, go_read, report_write)
    os.close(go_read)
    os.close(report_write)
    return Waiting(pid, command.argv[0], go_write, report_read)


def fork() -> int:
    """`os.fork`, with a RunError when the machine has no room for another process."""
    import warnings

    try:
        with warnings.catch_warnings():
            # Python warns of locks that another thread holds at this moment, and so for ever in the
            # child. What the child goes on with takes none that was there before.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError as error:  # EAGAIN, ENOMEM: limits of the user or the machine
        raise RunError(
            f"no process can be started: {error.strerror}",
            remedy="see ulimit -u, and what fills the memory",
        ) from error


def _check(command: Command) -> None:
    if not command.argv or not command.argv[0]:
        raise InvalidValueError("the command is empty", remedy="name a program to run")
    texts = (*command.argv, *command.environ, *command.environ.values())
    for text in texts:
        if "\0" in text:
            raise InvalidValueError(f"{text!r} holds a NUL, which no program can be given")
        try:
            os.fsencode(text)
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"{text!r} cannot be written in this locale") from error


def _become(command: Command, inherited: signals.Inherited, go: int, report: int) -> NoReturn:
    """The child's whole life until exec; it never returns into the parent's code."""
    status = _EXIT_ABANDONED
    try:
        if command.detached:
            os.setsid()
        if command.death_signal:
            # Before it is let go: if the parent dies earlier, the pipe ends and nothing runs.
            subreaper.set_parent_death_signal(command.death_signal)
        go, report = _arrange(command, go, report)
        if os.read(go, 1) == _GO:
            environ = _announced(command, os.getpid())
            signals.restore(inherited)
            number = _exec(command.argv, environ)
            os.write(report, str(number).encode())
            status = EXIT_NOT_FOUND
    except OSError as error:
        os.write(report, str(error.errno).encode())
    finally:
        os._exit(status)


def _arrange(command: Command, go: int, report: int) -> tuple[int, int]:
    """Put every descriptor where the command expects it; the new places of the two pipes."""
    count = len(command.handed)
    beyond = FIRST_HANDED + count
    # first out of the way of each other, then into place
    go, report = (_moved(fd, beyond) for fd in (go, report))
    handed = [_moved(fd, beyond) for _, fd in command.handed]
    if command.output is not None:
        output = _moved(command.output, beyond)
        os.dup2(_moved(os.open(os.devnull, os.O_RDONLY), beyond), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
    for place, fd in enumerate(handed, FIRST_HANDED):
        os.dup2(fd, place)
    if command.detached:
        close_all_but({0, 1, 2, *range(FIRST_HANDED, beyond), go, report})
    return go, report


def _moved(fd: int, lowest: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor of this process that is not in `kept`."""
    directory = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(directory):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # EBADF: the descriptor that listed the directory
                continue


def _announced(command: Command, pid: int) -> dict[str, str]:
    """The command's variables, with those of sd_listen_fds(3) for this very process."""
    environ = dict(command.environ)
    if command.handed:
        environ["LISTEN_PID"] = str(pid)
        environ["LISTEN_FDS"] = str(len(command.handed))
        environ["LISTEN_FDNAMES"] = ":".join(name for name, _ in command.handed)
    return environ


def _exec(argv: tuple[str, ...], environ: dict[str, str]) -> int:
    """Execute as execvp(3) does; returns only on failure, with the errno that says most."""
    verdict = errno.ENOENT
    for path in candidates(argv[0], environ):
        number = _try(os.execve, path, argv, environ)
        if number == errno.ENOEXEC:
            number = _try(os.execve, _FALLBACK_SHELL, (_FALLBACK_SHELL, path, *argv[1:]), environ)
        if number in {errno.ENOENT, errno.ENOTDIR}:
            if os.path.isfile(path):
                return errno.ENOEXEC  # it is there, but the interpreter that it names is not
            continue
        if number != errno.EACCES:
            return number
        verdict = number
    return verdict


def candidates(program: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The paths that a program's name may stand for, in the order of PATH."""
    if "/" in program:
        return (program,)
    places = os.get_exec_path(dict(environ))
    return tuple(os.path.join(place or os.curdir, program) for place in places)


def _try(
    execve: Callable[[str, tuple[str, ...], dict[str, str]], NoReturn],
    path: str,
    argv: tuple[str, ...],
    environ: dict[str, str],
) -> int:
    try:
        execve(path, argv, environ)
    except OSError as error:
        return error.errno or errno.EIO
