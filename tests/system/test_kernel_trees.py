"""Directories with a nonce: made whole, removed only while they carry it, and nothing else."""

from __future__ import annotations

import os
import socket
import stat
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from corral.errors import EnumerationError, InvalidValueError, RefusedError
from corral.kernel.paths import FileWriteError, make_marked_directory, read_nonce, remove_tree
from support.engines import require_engine
from support.programs import program, said

if TYPE_CHECKING:
    from pathlib import Path

NONCE = "5f2c9a"
_CRASHED = f".corral-{NONCE}"

_TOOLS = """
from corral.errors import CorralError
from corral.kernel.paths import *
place = sys.argv[1]
"""


def with_tools(source: str, place: object) -> list[str]:
    return [*program(_TOOLS + dedent(source)), str(place)]


def within_mounts(source: str) -> list[str]:
    """The argv that runs `source` with mounts of its own and /mnt a small empty file system."""
    small = 'mount -t tmpfs -o size=64k none /mnt && exec "$@"'
    return ["unshare", "-m", "sh", "-c", small, "sh", *with_tools(source, "/mnt")]


@pytest.fixture
def tree(private_root: Path) -> Path:
    """A marked directory with files, directories, links and names of all kinds."""
    parent = private_root / "environments"
    parent.mkdir()
    path = parent / "env"
    make_marked_directory(str(path), NONCE)
    (path / "run" / "deep" / "er").mkdir(parents=True)
    (path / "run" / "deep" / "er" / "log").write_text("x")
    (path / "empty").mkdir()
    (path / "data.sqlite3").write_bytes(bytes(5000))
    return path


def parents_names(tree: Path) -> list[str]:
    return sorted(os.listdir(tree.parent))


def test_a_directory_is_private_and_carries_its_nonce(private_root: Path) -> None:
    before = os.umask(0o777)
    try:
        make_marked_directory(str(private_root / "env"), NONCE)
    finally:
        os.umask(before)
    path = private_root / "env"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((path / ".corral-nonce").stat().st_mode) == 0o600
    assert read_nonce(str(path)) == NONCE
    assert sorted(os.listdir(path)) == [".corral-nonce"]
    assert _CRASHED not in os.listdir(private_root)


def test_making_it_again_changes_nothing(tree: Path) -> None:
    make_marked_directory(str(tree), NONCE)
    assert (tree / "run" / "deep" / "er" / "log").read_text() == "x"


@pytest.mark.parametrize("what", ["directory", "file", "symlink", "foreign"])
def test_whatever_else_is_there_is_refused(tree: Path, private_root: Path, what: str) -> None:
    there = private_root / "there"
    if what == "directory":
        there.mkdir()
    elif what == "file":
        there.touch()
    elif what == "symlink":
        there.symlink_to(tree)
    else:
        make_marked_directory(str(there), "another")
    with pytest.raises(RefusedError):
        make_marked_directory(str(there), NONCE)
    assert os.path.lexists(there)
    assert read_nonce(str(tree)) == NONCE


@pytest.mark.parametrize("nonce", ["", " ", "a/b", "..", "a\n", "é", "a-b"])
def test_a_nonce_is_letters_and_digits(tree: Path, nonce: str) -> None:
    with pytest.raises(InvalidValueError):
        make_marked_directory(str(tree.parent / "new"), nonce)
    (tree / ".corral-nonce").write_text(nonce + "\n")
    assert remove_tree(str(tree), nonce)
    assert (tree / "data.sqlite3").exists()


def test_a_missing_parent_is_an_error(private_root: Path) -> None:
    with pytest.raises(FileWriteError):
        make_marked_directory(str(private_root / "a" / "b"), NONCE)


def test_what_a_crash_left_while_it_was_made_is_no_obstacle(private_root: Path) -> None:
    torn = private_root / _CRASHED
    torn.mkdir()
    (torn / ".corral-nonce").write_text(NONCE[:2])
    path = str(private_root / "env")
    assert read_nonce(path) is None
    make_marked_directory(path, NONCE)
    assert read_nonce(path) == NONCE
    assert not torn.exists()


def test_a_nonce_is_told_only_from_what_is_ones_own(tree: Path, private_root: Path) -> None:
    assert read_nonce(str(private_root / "missing")) is None
    assert read_nonce(str(private_root)) is None
    assert read_nonce(str(tree / "data.sqlite3")) is None
    link = private_root / "link"
    link.symlink_to(tree)
    assert read_nonce(str(link)) is None
    nonce = tree / ".corral-nonce"
    nonce.write_bytes(b"x" * 5000)
    assert read_nonce(str(tree)) is None
    nonce.unlink()
    os.mkfifo(nonce)
    assert read_nonce(str(tree)) is None


def test_a_nonce_that_is_a_symlink_is_a_failed_look(tree: Path) -> None:
    nonce = tree / ".corral-nonce"
    nonce.rename(tree / "moved")
    nonce.symlink_to("moved")
    with pytest.raises(EnumerationError):
        read_nonce(str(tree))
    assert remove_tree(str(tree), NONCE)
    assert (tree / "data.sqlite3").exists()


def test_a_marked_tree_is_removed(tree: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    assert remove_tree(str(tree), NONCE) == []
    assert parents_names(tree) == []
    assert len(os.listdir("/dev/fd")) == before


def test_one_that_is_gone_already_is_removed(tree: Path) -> None:
    assert remove_tree(str(tree.parent / "missing"), NONCE) == []
    assert remove_tree(str(tree.parent / "no" / "parent"), NONCE) == []


@pytest.mark.parametrize("nonce", ["5f2c9", "5f2c9a0", "5F2C9A", "another"])
def test_another_nonce_removes_nothing(tree: Path, nonce: str) -> None:
    failures = remove_tree(str(tree), nonce)
    assert len(failures) == 1
    assert "does not carry the nonce" in failures[0]
    assert (tree / "run" / "deep" / "er" / "log").exists()


def test_a_directory_without_a_nonce_is_not_removed_even_if_it_is_empty(tree: Path) -> None:
    bare = tree.parent / "bare"
    bare.mkdir()
    assert remove_tree(str(bare), NONCE)
    assert bare.is_dir()


def test_a_symlink_in_its_place_is_not_followed_and_not_removed(tree: Path) -> None:
    moved = tree.parent / "moved"
    tree.rename(moved)
    tree.symlink_to(moved)
    failures = remove_tree(str(tree), NONCE)
    assert len(failures) == 1
    assert "symlink" in failures[0]
    assert tree.is_symlink()
    assert (moved / "data.sqlite3").exists()


def test_links_are_removed_and_what_they_lead_to_stays(tree: Path, private_root: Path) -> None:
    precious = private_root / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (tree / "to-directory").symlink_to(precious)
    (tree / "run" / "up").symlink_to("../../..")
    (tree / "to-file").symlink_to(precious / "file")
    (tree / "loop").symlink_to("loop")
    os.link(precious / "file", tree / "hard")
    assert remove_tree(str(tree), NONCE) == []
    assert (precious / "file").read_text() == "x"
    assert not tree.exists()


def test_a_directory_swapped_for_a_link_while_it_is_removed_leads_nowhere(
    tree: Path, private_root: Path
) -> None:
    precious = private_root / "precious"
    precious.mkdir()
    source = """
        keep = os.path.dirname(os.path.dirname(place)) + "/precious/"
        for n in range(50):
            open(keep + str(n), "w").close()
        victim = place + "/run/swapped"
        os.mkdir(victim)
        stop = threading.Event()
        def swap():
            while not stop.is_set():
                try:
                    os.rename(victim, victim + ".away")
                    os.symlink(keep, victim)
                    os.unlink(victim)
                    os.rename(victim + ".away", victim)
                except OSError:
                    pass
        thread = threading.Thread(target=swap)
        thread.start()
        for n in range(60):
            remove_tree(place, sys.argv[2])
            if not os.path.isdir(place):
                make_marked_directory(place, sys.argv[2])
            try:
                os.makedirs(victim + "/below")
            except OSError:
                pass
        stop.set()
        thread.join()
        say(len([name for name in os.listdir(keep) if name.isdecimal()]))
    """
    assert said([*with_tools(source, tree), NONCE]) == 50


@pytest.mark.parametrize(
    "name",
    [
        b"line\nbreak",
        b" ",
        b"-rf",
        b"\xff\xfe",
        b"*",
        b"a;b",
        b"$(id)",
        "é日本".encode(),
        b"x" * 255,
    ],
)
def test_any_name_is_removed_and_can_be_told(tree: Path, name: bytes) -> None:
    directory = os.fsencode(tree) + b"/" + name
    os.mkdir(directory)
    with open(directory + b"/" + name, "w"):
        pass
    os.rename(os.fsencode(tree) + b"/.corral-nonce", os.fsencode(tree) + b"/nonce")
    (told,) = remove_tree(str(tree), NONCE)
    told.encode()  # printable everywhere
    os.rename(os.fsencode(tree) + b"/nonce", os.fsencode(tree) + b"/.corral-nonce")
    assert remove_tree(str(tree), NONCE) == []
    assert not tree.exists()


def test_pipes_and_sockets_are_removed_without_waiting(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
        assert remove_tree(str(tree), NONCE) == []
    assert not tree.exists()


def test_a_deep_tree_is_removed(tree: Path) -> None:
    source = """
        os.chdir(place)
        for _ in range(400):
            os.mkdir("d")
            os.chdir("d")
        say(remove_tree(place, sys.argv[2]))
    """
    assert said([*with_tools(source, tree), NONCE]) == []
    assert not tree.exists()


def test_a_tree_deeper_than_descriptors_reach_is_told_and_goes_on_later(tree: Path) -> None:
    source = """
        import resource
        os.chdir(place)
        for _ in range(60):
            os.mkdir("d")
            os.chdir("d")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
        first = remove_tree(place, sys.argv[2])
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
        say([len(first), first[0].endswith("Too many open files"), remove_tree(place, sys.argv[2])])
    """
    assert said([*with_tools(source, tree), NONCE]) == [1, True, []]
    assert not tree.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_read_only_directory_is_told_and_the_rest_goes(private_root: Path) -> None:
    private_root.chmod(0o777)
    source = """
        become_nobody()
        path = place + "/env"
        make_marked_directory(path, sys.argv[2])
        for name in "closed", "open":
            os.mkdir(f"{path}/{name}")
            open(f"{path}/{name}/file", "w").close()
        os.chmod(path + "/closed", 0o555)
        first = remove_tree(path, sys.argv[2])
        left = sorted(os.listdir(path)), os.listdir(path + "/closed"), read_nonce(path)
        os.chmod(path + "/closed", 0o000)
        second = remove_tree(path, sys.argv[2])
        os.chmod(path + "/closed", 0o700)
        say([first, *left, second, remove_tree(path, sys.argv[2]), os.path.exists(path)])
    """
    path = f"{private_root}/env"
    assert said([*with_tools(source, private_root), NONCE]) == [
        [f"'{path}/closed/file': Permission denied"],
        [".corral-nonce", "closed"],
        ["file"],
        NONCE,
        [f"'{path}/closed': Permission denied"],
        [],
        False,
    ]


def test_a_read_only_file_system_is_told() -> None:
    require_engine("namespaces")
    source = """
        make_marked_directory(place + "/env", "abc")
        open(place + "/env/file", "w").close()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        say([remove_tree(place + "/env", "abc"), os.path.exists(place + "/env/file")])
    """
    assert said(within_mounts(source)) == [["'/mnt/env/file': Read-only file system"], True]


@pytest.mark.parametrize("other", ["-t tmpfs none", "--bind /mnt/precious"])
def test_a_mount_point_is_not_crossed_not_even_of_the_same_disk(other: str) -> None:
    require_engine("namespaces")
    source = f"""
        os.mkdir(place + "/precious")
        make_marked_directory(place + "/env", "abc")
        os.makedirs(place + "/env/a/mounted")
        open(place + "/env/file", "w").close()
        subprocess.run(["mount", *"{other}".split(), place + "/env/a/mounted"], check=True)
        open(place + "/env/a/mounted/keep", "w").close()
        first = remove_tree(place + "/env", "abc")
        kept = os.listdir(place + "/env/a/mounted"), read_nonce(place + "/env")
        gone = not os.path.exists(place + "/env/file")
        subprocess.run(["umount", place + "/env/a/mounted"], check=True)
        say([first, *kept, gone, remove_tree(place + "/env", "abc"), sorted(os.listdir(place))])
    """
    message = "it is a mount point, and nothing beyond it is touched"
    assert said(within_mounts(source)) == [
        [f"'/mnt/env/a/mounted': {message}"],
        ["keep"],
        "abc",
        True,
        [],
        ["precious"],
    ]


def test_a_marked_directory_that_became_a_mount_point_is_left() -> None:
    require_engine("namespaces")
    source = """
        make_marked_directory(place + "/env", "abc")
        subprocess.run(["mount", "--bind", place + "/env", place + "/env"], check=True)
        say([remove_tree(place + "/env", "abc"), read_nonce(place + "/env")])
    """
    failures, nonce = said(within_mounts(source))
    assert ("mount point" in failures[0], nonce) == (True, "abc")


def test_a_full_disk_leaves_no_half_made_directory() -> None:
    require_engine("namespaces")
    source = """
        with open(place + "/filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        try:
            make_marked_directory(place + "/env", "abc")
        except CorralError as error:
            found = [type(error).__name__, error.remedy, os.listdir(place) == ["filler"]]
        os.unlink(place + "/filler")
        make_marked_directory(place + "/env", "abc")
        say([*found, read_nonce(place + "/env"), os.listdir(place)])
    """
    assert said(within_mounts(source)) == [
        "FileWriteError",
        "free some space on its file system",
        True,
        "abc",
        ["env"],
    ]


def test_a_removal_that_was_killed_at_any_step_is_finished_by_the_next(tree: Path) -> None:
    source = """
        nonce = sys.argv[2]
        for n in range(40):
            make_marked_directory(place, nonce)
            for name in range(10):
                os.makedirs(f"{place}/d{name}", exist_ok=True)
                open(f"{place}/d{name}/file", "w").close()
            pid = child(lambda: remove_tree(place, nonce))
            time.sleep(0.00004 * n)
            end(pid)
            assert not os.path.exists(place) or read_nonce(place) == nonce
            assert remove_tree(place, nonce) == []
            assert os.listdir(os.path.dirname(place)) == [], os.listdir(os.path.dirname(place))
        say("done")
    """
    assert remove_tree(str(tree), NONCE) == []
    assert said([*with_tools(source, tree), NONCE]) == "done"


def test_a_making_that_was_killed_at_any_step_is_cleaned_up(tree: Path) -> None:
    source = """
        nonce = sys.argv[2]
        for n in range(60):
            pid = child(lambda: make_marked_directory(place, nonce))
            time.sleep(0.00002 * n)
            end(pid)
            assert not os.path.exists(place) or read_nonce(place) == nonce
            assert remove_tree(place, nonce) == []
            assert os.listdir(os.path.dirname(place)) == []
        say("done")
    """
    assert remove_tree(str(tree), NONCE) == []
    assert said([*with_tools(source, tree), NONCE]) == "done"


def test_a_file_that_somebody_else_removes_meanwhile_is_no_failure(tree: Path) -> None:
    source = """
        for n in range(300):
            os.makedirs(f"{place}/d{n}")
            open(f"{place}/d{n}/file", "w").close()
        pids = [child(lambda: say(remove_tree(place, sys.argv[2]))) for _ in range(2)]
        for pid in pids:
            os.waitpid(pid, 0)
        say([remove_tree(place, sys.argv[2]), os.listdir(os.path.dirname(place))])
    """
    assert said([*with_tools(source, tree), NONCE]) == [[], []]


def test_elsewhere_the_device_tells_mounts_apart(tree: Path) -> None:
    if sys.platform != "linux":
        assert remove_tree(str(tree), NONCE) == []
        return
    require_engine("namespaces")
    source = """
        make_marked_directory(place + "/env", "abc")
        os.mkdir(place + "/env/mounted")
        subprocess.run(["mount", "-t", "tmpfs", "none", place + "/env/mounted"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/proc"], check=True)
        say(remove_tree(place + "/env", "abc"))
    """
    assert "mount point" in said(within_mounts(source))[0]
