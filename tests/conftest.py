"""Fixtures for every test: a private home, no inherited identity, and processes that are ended.

Waiting is `from support.waiting import eventually`; git is `from support.repositories import git`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from support.agents import Agent
from support.processes import Tracker, carrying, standing_in
from support.repositories import GIT_CONFIG, add_worktree, make_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdist.remote import Producer

    from support.scheduling import EngineScheduling

_ROOT = Path(__file__).parent.parent

# Whatever could tell corral who the worker is, or lead it to a real engine, repository or file.
_FOREIGN_PREFIXES = (
    "BUILDKITE",
    "CI_",
    "CLAUDE",
    "CODEX",
    "COMPOSE_",
    "CORRAL_",
    "DOCKER_",
    "GITHUB_",
    "GITLAB_",
    "GIT_",
    "KIND_",
    "LISTEN_",
    "MINIKUBE_",
    "PG",
    "PODMAN_",
    "RUNNER_",
    "TMUX",
    "XDG_",
)
_FOREIGN_NAMES = frozenset({"CI", "CONTAINER_HOST", "KUBECONFIG", "PORT", "VIRTUAL_ENV"})

settings.register_profile(
    "corral",
    deadline=None,  # the machine is shared: a slow example is no fault
    database=DirectoryBasedExampleDatabase(_ROOT / ".hypothesis" / "examples"),
)
settings.load_profile("corral")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--soak-seconds", type=float, default=2.0, help="how long each soak campaign runs"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> EngineScheduling:
    from support.scheduling import EngineScheduling

    return EngineScheduling(config, log)


@pytest.fixture(scope="session")
def soak_seconds(request: pytest.FixtureRequest) -> float:
    """How long a campaign runs: short in every test run, long under `make soak`."""
    return float(request.config.getoption("--soak-seconds"))


@pytest.fixture
def private_root() -> Iterator[Path]:
    """A directory of this test's own with a short path (socket paths end at 103 bytes)."""
    root = Path(tempfile.mkdtemp(prefix="ct-")).resolve()
    yield root
    shutil.rmtree(str(root), onerror=_open_up_and_retry)


def _open_up_and_retry(function: Callable[[str], object], path: str, _error: object) -> None:
    """A test may leave directories without permissions; what lies above its own is not its own."""
    for directory in (os.path.dirname(path), path):
        own = directory.startswith(os.path.join(tempfile.gettempdir(), "ct-"))
        if own and os.path.isdir(directory) and not os.path.islink(directory):
            os.chmod(directory, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        function(path)


@pytest.fixture(autouse=True)
def private_home(private_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME, XDG_* and CORRAL_STATE_DIR below a private directory, and no inherited identity."""
    for name in list(os.environ):
        if name.startswith(_FOREIGN_PREFIXES) or name in _FOREIGN_NAMES:
            monkeypatch.delenv(name)
    home = private_root / "home"
    home.mkdir(mode=0o700)
    runtime = private_root / "run"
    runtime.mkdir(mode=0o700)
    (home / ".gitconfig").write_text(GIT_CONFIG)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local/state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / ".local/share"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("CORRAL_STATE_DIR", str(private_root / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def state_dir(private_root: Path) -> Path:
    """Where CORRAL_STATE_DIR points; it does not exist until something creates it."""
    return private_root / "state"


@pytest.fixture
def git_repo(private_root: Path) -> Path:
    """A git repository with one commit."""
    return make_repository(private_root / "repo")


@pytest.fixture
def worktree(git_repo: Path, private_root: Path) -> Callable[[str], Path]:
    """Makes a worktree of `git_repo` by name: `worktree("feature")` is its path."""
    return lambda name: add_worktree(git_repo, private_root / "trees" / name)


@pytest.fixture
def track() -> Iterator[Tracker]:
    """Starts and remembers processes, and ends exactly those: see `support.processes`."""
    tracker = Tracker()
    yield tracker
    tracker.end()


@pytest.fixture
def agent(track: Tracker, private_root: Path, git_repo: Path) -> Callable[..., Agent]:
    """Starts stand-ins for coding agents: `agent("session")`; see `support.agents.Agent`."""

    def make(session: str = "s-1", cwd: Path | None = None, **options: Any) -> Agent:
        return Agent(track, private_root, session, cwd or git_repo, **options)

    return make


def _strays(root: Path, state_dir: Path) -> set[int]:
    return {*carrying("CORRAL_STATE_DIR", str(state_dir)), *standing_in(str(root))}


@pytest.fixture(autouse=True)
def reap_strays(
    request: pytest.FixtureRequest, private_home: Path, private_root: Path, state_dir: Path
) -> Iterator[None]:
    """End what carries this very test's CORRAL_STATE_DIR or stands in its directory.

    So nothing outlives a test, not even what wiped its environment. The directory's name is random
    and unique, so both are exact. Unit tests start nothing.
    """
    del private_home  # only its order matters: strays are looked for before it goes
    yield
    if "unit" in request.path.parts or sys.platform != "linux":
        return
    for _round in range(10):
        tracker = Tracker()
        pids = [tracker.pid(pid) for pid in _strays(private_root, state_dir)]
        if not pids:
            return
        # what was pinned may be another process by now: only what is still a stray is ended
        tracker.keep_only(_strays(private_root, state_dir))
        tracker.end()
