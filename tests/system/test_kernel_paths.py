"""Files written whole, read only when they are what they should be, and file systems."""

from __future__ import annotations

import os
import socket
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import psutil
import pytest

from corral.errors import InvalidValueError
from corral.kernel import mounts
from corral.kernel.paths import (
    FileWriteError,
    atomic_write,
    filesystem_of,
    open_directory,
    parent_is_mounted,
    read_regular,
)
from support.engines import require_engine
from support.programs import program, said

if TYPE_CHECKING:
    from pathlib import Path

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

_TOOLS = """
import errno
from corral.errors import CorralError, InvalidValueError
from corral.kernel.paths import *
place = sys.argv[1]

def failed(action, *arguments, **options):
    try:
        action(*arguments, **options)
    except CorralError as error:
        return [type(error).__name__, error.message.partition(": ")[2], error.remedy]
    return None

def fill():
    with open(place + "/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC
"""


def with_tools(source: str, place: str) -> list[str]:
    return [*program(_TOOLS + dedent(source)), place]


def within_tmpfs(source: str, options: str = "size=32k") -> list[str]:
    """The argv that runs `source` where /mnt, its first argument, is a small file system."""
    small = f'mount -t tmpfs -o {options} none /mnt && exec "$@"'
    return ["unshare", "-m", "sh", "-c", small, "sh", *with_tools(source, "/mnt")]


@pytest.fixture
def file(private_root: Path) -> Path:
    return private_root / "file"


def test_a_file_is_written_and_replaced_whole(file: Path) -> None:
    for data in (b"one", b"", bytes(range(256)) * 1000):
        atomic_write(str(file), data)
        assert file.read_bytes() == data
    assert os.listdir(file.parent) == sorted(
        ["file", "home", "run"], key=os.listdir(file.parent).index
    )


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_the_mode_is_what_was_asked_for(file: Path, mode: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        atomic_write(str(file), b"x", mode)
        atomic_write(str(file), b"y", mode)
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o7777 == mode
    assert file.read_bytes() == b"y"


def test_a_reader_of_the_old_file_keeps_it(file: Path) -> None:
    atomic_write(str(file), b"old")
    with file.open("rb") as reader:
        atomic_write(str(file), b"new")
        assert reader.read() == b"old"


def test_a_relative_path_works(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    atomic_write("file", b"x")
    assert read_regular("file") == b"x"


@pytest.mark.parametrize("dangling", [True, False])
def test_a_symlink_is_not_replaced_and_not_followed(file: Path, dangling: bool) -> None:
    target = file.parent / "target"
    if not dangling:
        target.write_bytes(b"precious")
    file.symlink_to(target)
    with pytest.raises(InvalidValueError, match="symbolic link") as caught:
        atomic_write(str(file), b"x")
    assert (caught.value.resource, bool(caught.value.remedy)) == (str(file), True)
    assert file.is_symlink()
    assert dangling is not target.exists()
    assert sorted(os.listdir(file.parent)) == sorted(
        {"file", "home", "run"} | (set() if dangling else {"target"})
    )


def test_a_directory_or_pipe_is_not_replaced(file: Path) -> None:
    file.mkdir()
    with pytest.raises(InvalidValueError, match="no regular file"):
        atomic_write(str(file), b"x")
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(InvalidValueError, match="no regular file"):
        atomic_write(str(file), b"x")


def test_a_missing_directory_is_an_error_with_a_remedy(file: Path) -> None:
    with pytest.raises(FileWriteError, match="No such file or directory") as caught:
        atomic_write(str(file / "below"), b"x")
    assert caught.value.remedy
    with pytest.raises(FileWriteError, match="File name too long"):
        atomic_write(str(file) + "x" * 300, b"x")


def test_a_full_disk_leaves_the_old_file_and_nothing_else() -> None:
    require_engine("namespaces")
    source = """
        atomic_write(place + "/file", b"old")
        fill()
        before = sorted(os.listdir(place))
        error = failed(atomic_write, place + "/file", bytes(9000))
        say([error, read_regular(place + "/file") == b"old", sorted(os.listdir(place)) == before])
    """
    error = [
        "FileWriteError",
        "No space left on device",
        "free some space on its file system",
    ]
    assert said(within_tmpfs(source)) == [error, True, True]


def test_a_read_only_file_system_is_an_error_with_a_remedy() -> None:
    require_engine("namespaces")
    source = """
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        say(failed(atomic_write, place + "/file", b"x"))
    """
    name, message, remedy = said(within_tmpfs(source))
    assert (name, message) == ("FileWriteError", os.strerror(30))
    assert "read-only" in remedy


@as_root
def test_a_directory_without_permission_is_an_error_with_a_remedy(private_root: Path) -> None:
    private_root.chmod(0o755)
    source = "become_nobody()\nsay(failed(atomic_write, place + '/file', b'x'))"
    name, message, remedy = said(with_tools(source, str(private_root)))
    assert (name, message, bool(remedy)) == ("FileWriteError", os.strerror(13), True)


def test_a_write_that_is_interrupted_leaves_nothing(file: Path) -> None:
    source = """
        def interrupt(number, frame):
            raise KeyboardInterrupt
        left = []
        for n in range(200):
            try:
                signal.signal(signal.SIGALRM, interrupt)
                signal.setitimer(signal.ITIMER_REAL, 0.00002 + n * 0.00002)
                atomic_write(place + "/file", bytes(100_000))
                signal.signal(signal.SIGALRM, signal.SIG_IGN)
            except KeyboardInterrupt:
                pass
            left += [name for name in os.listdir(place) if name.endswith(".tmp")]
        say([left, len(read_regular(place + "/file"))])
    """
    file.mkdir()
    (file / "file").write_bytes(bytes(100_000))
    assert said(with_tools(source, str(file))) == [[], 100_000]


def test_a_regular_file_is_read(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 400)
    assert read_regular(str(file)) == bytes(range(256)) * 400
    file.write_bytes(b"")
    assert read_regular(str(file)) == b""


def test_a_file_may_be_as_long_as_its_limit_and_no_longer(file: Path) -> None:
    file.write_bytes(b"12345")
    assert read_regular(str(file), limit=5) == b"12345"
    with pytest.raises(InvalidValueError, match="longer than 4 bytes"):
        read_regular(str(file), limit=4)


def test_what_is_no_regular_file_is_refused_at_once(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(InvalidValueError, match="no regular file"):
        read_regular(str(file))  # and does not wait for a writer
    with pytest.raises(InvalidValueError, match="no regular file"):
        read_regular(str(file.parent))
    with pytest.raises(InvalidValueError):
        read_regular("/dev/null")
    link = file.parent / "link"
    link.symlink_to("/etc/passwd")
    with pytest.raises(InvalidValueError, match="symbolic link"):
        read_regular(str(link))


def test_a_socket_is_refused(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))
        with pytest.raises(InvalidValueError, match="no regular file"):
            read_regular(str(file))


def test_a_missing_file_is_said_to_be_missing(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(str(file))


@as_root
def test_another_users_file_is_refused(file: Path) -> None:
    file.write_bytes(b"x")
    os.chown(file, 65534, 65534)
    with pytest.raises(InvalidValueError, match="another user"):
        read_regular(str(file))


def test_a_directory_is_opened_but_no_link_to_one(file: Path) -> None:
    file.mkdir()
    fd = open_directory(str(file))
    try:
        assert os.path.samestat(os.fstat(fd), file.stat())
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)
    link = file.parent / "link"
    link.symlink_to(file)
    with pytest.raises(InvalidValueError, match="symbolic link"):
        open_directory(str(link))
    (file / "plain").write_bytes(b"")
    with pytest.raises(InvalidValueError, match="no directory"):
        open_directory(str(file / "plain"))
    with pytest.raises(FileNotFoundError):
        open_directory(str(file / "missing"))


def test_the_file_system_of_a_path_is_told(private_root: Path) -> None:
    if sys.platform == "linux":
        assert filesystem_of("/proc/sys") == "proc"
    kind = filesystem_of(str(private_root))
    assert kind
    assert filesystem_of(str(private_root / "not" / "there")) == kind
    (private_root / "link").symlink_to("/proc")
    if sys.platform == "linux":
        assert filesystem_of(str(private_root / "link" / "self")) == "proc"


def test_elsewhere_psutil_tells_the_file_system() -> None:
    here = max(
        (p for p in psutil.disk_partitions(all=True) if "/proc".startswith(p.mountpoint)),
        key=lambda p: len(p.mountpoint),
    )
    assert mounts._from_psutil("/proc/not/there") == here.fstype


def test_without_a_mount_table_nothing_is_known() -> None:
    require_engine("namespaces")
    source = "say(failed(filesystem_of, place))"
    hidden = 'mount -t tmpfs none /proc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", hidden, "sh", *with_tools(source, "/")]
    assert said(argv)[0] == "EnumerationError"


def test_a_parent_on_the_recorded_device_is_mounted(private_root: Path) -> None:
    device = private_root.stat().st_dev
    assert parent_is_mounted(str(private_root / "gone"), device)
    assert parent_is_mounted(str(private_root / "gone" / "with" / "parents"), device)
    assert not parent_is_mounted(str(private_root / "gone"), device + 1)
    (private_root / "plain").write_bytes(b"")
    assert parent_is_mounted(str(private_root / "plain" / "gone"), device)
    (private_root / "loop").symlink_to(private_root / "loop")
    assert not parent_is_mounted(str(private_root / "loop" / "gone"), device)


def test_an_unmounted_disk_is_no_proof() -> None:
    require_engine("namespaces")
    source = """
        os.mkdir(place + "/disk")
        subprocess.run(["mount", "-t", "tmpfs", "none", place + "/disk"], check=True)
        os.mkdir(place + "/disk/tree")
        device = os.stat(place + "/disk/tree").st_dev
        os.rmdir(place + "/disk/tree")
        mounted = parent_is_mounted(place + "/disk/tree", device)
        subprocess.run(["umount", place + "/disk"], check=True)
        say([mounted, parent_is_mounted(place + "/disk/tree", device)])
    """
    assert said(within_tmpfs(source)) == [True, False]


@as_root
def test_a_parent_that_may_not_be_looked_at_is_no_proof(private_root: Path) -> None:
    (private_root / "closed").mkdir(mode=0o700)
    private_root.chmod(0o755)
    source = """
        device = os.stat(place).st_dev
        become_nobody()
        say(parent_is_mounted(place + "/closed/a/tree", device))
    """
    assert said(with_tools(source, str(private_root))) is False
