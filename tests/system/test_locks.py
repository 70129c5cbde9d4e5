"""The conductor mutex over real processes: one holder, whatever happens to the others."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from corral import acquire_conductor_mutex, release_conductor_mutex
from corral.errors import (
    HeldError,
    InvalidValueError,
    NotFoundError,
    RegistryError,
    StateDirectoryError,
    UsageError,
)
from corral.model.lock import LockScope
from corral.services.calling import calling_context
from corral.services.locks import held_locks, lock_named, take_lock
from support.programs import program, said, started
from support.repositories import make_repository
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corral.services.locks import HeldLock
    from support.processes import Tracker

_HOLD = """
from corral import acquire_conductor_mutex
mutex = acquire_conductor_mutex(sys.argv[1])
say(None if mutex is None else mutex.fence)
"""


def _taken(release_id: str, directory: Path, **how: object) -> HeldLock:
    mutex = acquire_conductor_mutex(release_id, directory=str(directory), **how)  # type: ignore[arg-type]
    assert mutex is not None
    return mutex


def _free(release_id: str, directory: Path) -> bool:
    mutex = acquire_conductor_mutex(release_id, directory=str(directory))
    release_conductor_mutex(mutex)
    return mutex is not None


def test_two_worktrees_and_two_spellings_contend_for_one_lock(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    other = worktree("other")
    with _taken("v1.0", git_repo):
        for spelling in ("v1.0", " V1.0 ", "v 1.0", "1.0", "ｖ１．０"):  # noqa: RUF001
            assert not _free(spelling, git_repo)
            assert not _free(spelling, other / ".")
        assert _free("v10", other)
    assert _free("v1.0", other)


def test_a_copied_worktree_contends_as_well(
    git_repo: Path, worktree: Callable[[str], Path], private_root: Path
) -> None:
    other = worktree("other")
    shutil.copytree(other, private_root / "copy")
    with _taken("v1.0", git_repo):
        assert not _free("v1.0", private_root / "copy")


def test_two_clones_do_not_contend(git_repo: Path, private_root: Path) -> None:
    clone = make_repository(private_root / "another")
    with _taken("v1.0", git_repo):
        assert _free("v1.0", clone)


def test_the_scope_of_the_machine_reaches_every_directory(
    git_repo: Path, private_root: Path
) -> None:
    with _taken("v1.0", git_repo, scope="machine"):
        assert _free("v1.0", git_repo)
        assert not _free("v1.0", private_root)
        assert acquire_conductor_mutex("v1.0", scope="machine") is None


def test_the_scope_of_a_repository_needs_one(private_root: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        acquire_conductor_mutex("v1.0", scope="repo", directory=str(private_root))
    with pytest.raises(InvalidValueError, match="galaxy"):
        acquire_conductor_mutex("v1.0", scope="galaxy", directory=str(private_root))


def test_a_worktree_that_lost_its_administrative_directory_is_an_error(
    git_repo: Path, worktree: Callable[[str], Path]
) -> None:
    broken = worktree("broken")
    shutil.rmtree(git_repo / ".git" / "worktrees" / "broken")
    with pytest.raises(NotFoundError, match="administrative"):
        acquire_conductor_mutex("v1.0", directory=str(broken))


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_release_is_refused(empty: str) -> None:
    with pytest.raises(InvalidValueError, match="empty"):
        acquire_conductor_mutex(empty)


def test_a_timeout_without_blocking_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="blocking"):
        acquire_conductor_mutex("v1.0", timeout=1.0)


def test_the_fence_grows_with_every_holder_of_any_lock(private_root: Path) -> None:
    numbers = []
    for release in ("v1", "v2", "v1", "v1", "v2"):
        with _taken(release, private_root) as mutex:
            numbers.append(mutex.fence)
    assert numbers == sorted(set(numbers))


def test_a_killed_holder_frees_the_lock_at_once(private_root: Path, track: Tracker) -> None:
    holder, fence = started(track, [*program(_HOLD + "sleep()"), "v1.0"], cwd=private_root)
    assert not _free("v1.0", private_root)
    holder.kill()
    holder.wait()
    with _taken("v1.0", private_root) as mutex:
        assert mutex.fence > fence


def test_a_holder_that_forked_a_child_frees_it_all_the_same(
    private_root: Path, track: Tracker
) -> None:
    source = _HOLD + "track = child(sleep)\nsay(track)\nsleep()"
    holder, _ = started(track, [*program(source), "v1.0"], cwd=private_root)
    assert holder.stdout is not None
    child = track.pid(int(holder.stdout.readline()))
    holder.kill()
    holder.wait()
    assert os.path.exists(f"/proc/{child}")
    assert _free("v1.0", private_root)


_FORK = """
reader, writer = os.pipe()
def act():
    mutex.release()
    again = acquire_conductor_mutex(sys.argv[1])
    os.write(writer, json.dumps([mutex.held, again is None]).encode())
os.waitpid(child(act), 0)
say(json.loads(os.read(reader, 100)) + [mutex.held])
"""


def test_a_forked_child_neither_holds_nor_releases(private_root: Path) -> None:
    found = said([*program(_HOLD + _FORK), "v1.0"], cwd=private_root)
    assert found == [False, True, True]


_SPAWN = """
process = subprocess.Popen(["sleep", "600"], close_fds=False)
mutex.release()
again = acquire_conductor_mutex(sys.argv[1])
process.kill()
process.wait()
say(again is not None)
"""


def test_a_program_that_the_holder_starts_does_not_hold(private_root: Path) -> None:
    assert said([*program(_HOLD + _SPAWN), "v1.0"], cwd=private_root) is True


def test_a_deleted_lock_file_still_has_one_holder(private_root: Path) -> None:
    with _taken("v1.0", private_root) as mutex:
        os.unlink(mutex.path)
        assert not _free("v1.0", private_root)
    assert _free("v1.0", private_root)


def test_what_cannot_be_locked_is_an_error_and_not_contended(private_root: Path) -> None:
    with _taken("v1.0", private_root) as mutex:
        path = mutex.path
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(StateDirectoryError):
        acquire_conductor_mutex("v1.0", directory=str(private_root))
    os.rmdir(path)
    os.symlink("elsewhere", path)
    with pytest.raises(StateDirectoryError):
        acquire_conductor_mutex("v1.0", directory=str(private_root))


def test_a_directory_of_locks_that_is_none_is_an_error(private_root: Path, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "locks").write_text("")
    with pytest.raises(StateDirectoryError, match="locks"):
        acquire_conductor_mutex("v1.0", directory=str(private_root))


def test_without_a_fence_number_the_lock_is_not_kept(private_root: Path, state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700)
    (state_dir / "registry.sqlite3").write_bytes(b"this is no registry at all" * 100)
    for _attempt in range(2):
        with pytest.raises(RegistryError):
            acquire_conductor_mutex("v1.0", directory=str(private_root))
    (state_dir / "registry.sqlite3").unlink()
    assert _free("v1.0", private_root)


def test_two_threads_of_one_process_contend(private_root: Path) -> None:
    found: list[bool] = []
    with _taken("v1.0", private_root):
        thread = threading.Thread(target=lambda: found.append(_free("v1.0", private_root)))
        thread.start()
        thread.join()
    assert found == [False]


def test_who_waits_gets_it_as_soon_as_it_is_free(private_root: Path, track: Tracker) -> None:
    holder, _ = started(
        track, [*program(_HOLD + "sys.stdin.read()"), "v1.0"], cwd=private_root, stdin=-1
    )
    threading.Timer(0.2, holder.kill).start()
    before = time.monotonic()
    with _taken("v1.0", private_root, blocking=True, timeout=30.0):
        assert time.monotonic() - before < 10


def test_waiting_has_a_limit(private_root: Path) -> None:
    with _taken("v1.0", private_root):
        before = time.monotonic()
        assert (
            acquire_conductor_mutex("v1.0", True, timeout=0.2, directory=str(private_root)) is None
        )
        assert 0.2 <= time.monotonic() - before < 5
    assert _free("v1.0", private_root)


def test_who_does_not_get_it_is_told_who_has_it(git_repo: Path, track: Tracker) -> None:
    environ = {**os.environ, "CORRAL_SESSION": "driver-7"}
    holder, fence = started(track, [*program(_HOLD + "sleep()"), "v1.0"], cwd=git_repo, env=environ)
    context = calling_context(str(git_repo))
    lock = lock_named("V1.0", None, str(git_repo))
    with pytest.raises(HeldError) as caught:
        take_lock(context, lock)
    text = caught.value.message
    assert "session driver-7" in text
    assert f"process {holder.pid}" in text
    assert f"in {git_repo}" in text
    assert "since" in text
    assert caught.value.exit_status == 4
    (state,) = held_locks(context)
    assert state.lock == lock
    assert state.holder.fence == fence
    assert state.holder.session == "driver-7"


_ASK_BELOW = """
ask = (
    "from corral.services.calling import calling_context as c;"
    "from corral.services.locks import lock_named, take_lock;"
    "take_lock(c(), lock_named('1.0', None, '.'))"
)
done = subprocess.run([sys.executable, "-c", ask], stderr=subprocess.PIPE, text=True)
say(done.stderr)
"""


def test_one_that_asks_from_below_the_holder_is_told_so(private_root: Path) -> None:
    assert "runs below it" in said([*program(_HOLD + _ASK_BELOW), "v1.0"], cwd=private_root)


def test_only_locks_that_are_held_are_listed(private_root: Path, track: Tracker) -> None:
    context = calling_context(str(private_root))
    assert held_locks(context) == ()
    holder, _ = started(track, [*program(_HOLD + "sleep()"), "v2"], cwd=private_root)
    with _taken("v1", private_root), _taken("w", private_root, scope="machine"):
        names = [state.lock.name for state in held_locks(context) if state.lock]
        assert names == ["1", "2", "w"]
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert eventually(lambda: held_locks(context) == ())


def test_listing_disturbs_nobody_who_takes_a_lock(private_root: Path) -> None:
    context = calling_context(str(private_root))
    over = threading.Event()

    def look() -> None:
        own = calling_context(str(private_root))
        while not over.is_set():
            held_locks(own)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _round in range(50):
            assert _free("v1.0", private_root)
    finally:
        over.set()
        thread.join()
    assert held_locks(context) == ()


def test_the_scope_is_the_repository_inside_one(git_repo: Path, private_root: Path) -> None:
    below = git_repo / "a" / "b"
    below.mkdir(parents=True)
    assert lock_named("x", None, str(below)).scope is LockScope.REPO
    assert lock_named("x", None, str(private_root)).scope is LockScope.MACHINE
