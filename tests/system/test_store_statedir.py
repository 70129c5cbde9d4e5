"""The state directory: where it is, and that nobody else can reach into it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from corral.errors import StateDirectoryError
from corral.kernel.mounts import is_network, mount_of
from corral.store import statedir

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOME = "/home/me"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user")


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, "/home/me/.local/state/corral"),
        ({"XDG_STATE_HOME": "/x"}, "/x/corral"),
        ({"XDG_STATE_HOME": ""}, "/home/me/.local/state/corral"),
        ({"XDG_STATE_HOME": "relative"}, "/home/me/.local/state/corral"),
        ({"XDG_STATE_HOME": "/x", "CORRAL_STATE_DIR": "/c"}, "/c"),
        ({"CORRAL_STATE_DIR": "/c/../d//e/"}, "/d/e"),
    ],
)
def test_the_first_variable_that_is_set_names_it(variables: dict[str, str], found: str) -> None:
    assert statedir.locate(variables, HOME) == found


@pytest.mark.parametrize("value", ["", "state", "./state", "~/state", "/a\0b"])
def test_a_chosen_directory_that_is_not_absolute_is_refused(value: str) -> None:
    with pytest.raises(StateDirectoryError) as raised:
        statedir.locate({"CORRAL_STATE_DIR": value}, HOME)
    assert "CORRAL_STATE_DIR" in raised.value.message
    assert raised.value.remedy


def test_a_home_that_is_not_absolute_is_refused() -> None:
    with pytest.raises(StateDirectoryError):
        statedir.locate({}, "~")


def test_it_is_made_for_its_user_alone(private_root: Path) -> None:
    path = private_root / "a" / "b" / "corral"
    previous = os.umask(0)
    try:
        assert statedir.ensure(str(path)) == str(path)
    finally:
        os.umask(previous)
    assert path.stat().st_mode & 0o777 == 0o700
    assert statedir.ensure(str(path)) == str(path)


def test_looking_creates_nothing(private_root: Path) -> None:
    path = private_root / "state"
    assert not statedir.is_there(str(path))
    assert not path.exists()


def _symlink(path: Path) -> None:
    other = path.with_name("other")
    other.mkdir(mode=0o700)
    path.symlink_to(other)


def _dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _group_writable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def _world_writable(path: Path) -> None:
    path.mkdir()
    path.chmod(0o1707)


def _file(path: Path) -> None:
    path.write_text("")


def _foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("prepare", "word"),
    [
        (_symlink, "symlink"),
        (_dangling, "symlink"),
        (_group_writable, "written by other users"),
        (_world_writable, "written by other users"),
        (_file, "no directory"),
        pytest.param(_foreign, "belongs to user 12345", marks=as_root),
    ],
)
def test_a_directory_that_others_reach_is_refused_with_a_remedy(
    private_root: Path, prepare: Callable[[Path], None], word: str
) -> None:
    path = private_root / "state"
    prepare(path)
    before = path.lstat()
    for check in (statedir.ensure, statedir.is_there):
        with pytest.raises(StateDirectoryError) as raised:
            check(str(path))
        assert word in raised.value.message
        assert raised.value.remedy
        assert raised.value.resource == str(path)
    assert path.lstat()[:6] == before[:6]


def test_a_file_on_the_way_is_told(private_root: Path) -> None:
    (private_root / "file").write_text("")
    with pytest.raises(StateDirectoryError):
        statedir.ensure(str(private_root / "file" / "state"))


@pytest.mark.parametrize("link", [False, True])
def test_a_subdirectory_is_private_or_refused(private_root: Path, link: bool) -> None:
    path = private_root / "spool"
    if link:
        _symlink(path)
        with pytest.raises(StateDirectoryError):
            statedir.subdirectory(str(path))
        return
    assert statedir.subdirectory(str(path)) == str(path)
    assert statedir.subdirectory(str(path)) == str(path)
    assert path.stat().st_mode & 0o777 == 0o700


def _mounts(kind: str, source: str) -> str:
    return (
        "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"40 21 0:40 / /home rw,relatime shared:2 - {kind} {source} rw\n"
        "41 40 8:2 / /home/me/local rw - ext4 /dev/sdb1 rw\n"
    )


@pytest.mark.parametrize(
    ("kind", "source"),
    [("nfs4", "host:/home"), ("cifs", "//host/home"), ("fuse.sshfs", "me@host:"), ("9p", "share")],
)
def test_a_network_file_system_is_known_from_the_table_of_mounts(kind: str, source: str) -> None:
    table = _mounts(kind, source)
    assert is_network(mount_of("/home/me/.local/state/corral", table)[1])
    assert not is_network(mount_of("/home/me/local/state", table)[1])
    assert not is_network(mount_of("/var/lib", table)[1])


def test_a_directory_on_a_network_file_system_is_refused(
    private_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statedir, "filesystem_of", lambda _path: "nfs4")
    path = private_root / "state"
    with pytest.raises(StateDirectoryError) as raised:
        statedir.ensure(str(path))
    assert "nfs4" in raised.value.message
    assert "CORRAL_STATE_DIR" in raised.value.remedy
    assert not path.exists()


@as_root
def test_a_read_only_disk_is_told(private_root: Path) -> None:
    program = (
        "mount -t tmpfs tmpfs $1 && mount -o remount,ro $1 && exec $2 -c 'import sys\n"
        "from corral.errors import StateDirectoryError\nfrom corral.store import statedir\n"
        "try:\n    statedir.ensure(sys.argv[1])\n"
        "except StateDirectoryError as error:\n    print(error)' $1/state"
    )
    said = subprocess.run(
        ["unshare", "-m", "sh", "-c", program, "sh", private_root, sys.executable],
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Read-only file system" in said.stdout
