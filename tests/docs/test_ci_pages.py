"""The workflow files of the CI guides do what their pages say, under stand-ins for the runners."""

from __future__ import annotations

import os
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from support.ci_runners import GithubJob, GitlabJob, Runner
from support.command import alive, corral
from support.processes import carrying
from support.repositories import git, make_repository
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.processes import Tracker

    Make = Callable[[str], Runner]

_GUIDES = Path(__file__).parents[2] / "docs" / "how-to"
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LEGS = ("api", "browser")
_TEARDOWN = "Take everything down"


def _file_of(page: str) -> dict[str, Any]:
    (text,) = _YAML.findall((_GUIDES / f"{page}.md").read_text(encoding="utf-8"))
    found: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return found


@pytest.fixture
def checkouts(private_root: Path) -> dict[str, Path]:
    """A clone of one repository for each leg, below a runner's own work directory."""
    origin = make_repository(private_root / "origin")
    for leg in _LEGS:
        (origin / f"{leg}.txt").write_text(f"this is {leg}")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "What the tests ask for")
    found = {leg: private_root / f"runner-{leg}" / "shop" for leg in _LEGS}
    for path in found.values():
        path.parent.mkdir()
        git(private_root, "clone", "-q", str(origin), str(path))
    return found


@pytest.fixture
def make_runner(track: Tracker, private_root: Path) -> Make:
    # Ports of this test's own: other registries of the machine are not this one's business.
    first = 22000 + os.getpid() % 90 * 100
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CORRAL_POOL_FIRST": str(first),
        "CORRAL_POOL_LAST": str(first + 99),
    }
    return lambda program: Runner(track, private_root, program, environ)


def _github(runner: Runner, checkout: Path, leg: str, run: str = "7") -> GithubJob:
    known = {"GITHUB_RUN_ID": run, "GITHUB_RUN_ATTEMPT": "1", "RUNNER_NAME": f"runner-{leg}"}
    return GithubJob(runner, _file_of("github-actions"), "test", checkout, known, {"suite": leg})


def _gitlab(runner: Runner, checkout: Path, leg: str, job: str) -> GitlabJob:
    known = {"CI_JOB_ID": job, "CI_JOB_STATUS": "success"}
    return GitlabJob(runner, _file_of("gitlab")["test"], checkout, known, {"SUITE": leg})


def _servers() -> set[int]:
    """The servers of this test's jobs that run, and their supervisors."""
    found = set()
    for pid in carrying("CORRAL_STATE_DIR", os.environ["CORRAL_STATE_DIR"]):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended
        if b"http.server" in argv:
            found.add(pid)
    return found


def _assert_nothing_is_left(checkouts: dict[str, Path]) -> None:
    assert not _servers()
    for checkout in checkouts.values():
        shown = corral(checkout, "status", "--json").data
        assert shown["environment"] is None
        assert not shown["owned"]
        assert not shown["orphans"]
        assert not git(checkout, "status", "--short", "--ignored")
        assert not corral(checkout, "port", "list", "--all", "--json").data["ports"]


def test_legs_of_a_github_matrix_run_side_by_side_and_leave_nothing(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    jobs = {
        leg: _github(make_runner("Runner.Worker"), path, leg) for leg, path in checkouts.items()
    }
    with ThreadPoolExecutor(len(jobs)) as threads:
        ended = dict(zip(jobs, threads.map(lambda job: job.run(), jobs.values()), strict=True))
    for leg, steps in ended.items():
        assert [each.ran.status for each in steps] == [0] * 5, steps
        outputs = {each.name: each.ran.out for each in steps}
        assert outputs["Test"] == f"this is {leg}"
    assert len({job.environ["WEB_PORT"] for job in jobs.values()}) == len(jobs)
    assert len({job.environ["DATABASE_URL"] for job in jobs.values()}) == len(jobs)
    assert all(job.environ["PORT"] == job.environ["WEB_PORT"] for job in jobs.values())
    _assert_nothing_is_left(checkouts)


def test_a_github_job_whose_test_fails_shows_the_log_and_leaves_nothing(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    (checkouts["api"] / "api.txt").unlink()
    git(checkouts["api"], "commit", "-q", "-a", "-m", "Break it")
    steps = _github(make_runner("Runner.Worker"), checkouts["api"], "api").run()
    ran = {each.name: each.ran for each in steps}
    assert ran["Test"].status == 22
    assert '"GET /api.txt HTTP/1.1" 404' in ran["Show the server's log"].out
    assert ran[_TEARDOWN].status == 0
    _assert_nothing_is_left(checkouts)


def test_what_a_killed_github_runner_left_is_taken_down_by_the_next_job(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    names = [step.get("name") for step in _file_of("github-actions")["jobs"]["test"]["steps"]]
    before = [name for name in names if name not in {None, _TEARDOWN}]
    runner = make_runner("Runner.Worker")
    killed = _github(runner, checkouts["api"], "api")
    lives = _github(make_runner("Runner.Worker"), checkouts["browser"], "browser")
    for job in (killed, lives):
        assert not any(step.ran.status for step in job.run(before))
    kept = {pid for pid in _servers() if _works_in(pid, checkouts["browser"])}
    left = _servers() - kept
    assert kept
    assert left
    os.kill(runner.pid, signal.SIGKILL)
    eventually(lambda: not alive(runner.pid), message="the runner's end")

    steps = _github(make_runner("Runner.Worker"), checkouts["api"], "api", "8").run()
    assert not any(step.ran.status for step in steps), steps
    assert not any(map(alive, left))
    assert _servers() == kept
    lives.run([_TEARDOWN])
    _assert_nothing_is_left(checkouts)


def _works_in(pid: int, checkout: Path) -> bool:
    return os.readlink(f"/proc/{pid}/cwd") == str(checkout)


def test_jobs_of_a_gitlab_matrix_run_side_by_side_and_leave_nothing(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    runner = make_runner("gitlab-runner")
    jobs = {
        leg: _gitlab(runner, path, leg, f"10{number}")
        for number, (leg, path) in enumerate(checkouts.items())
    }
    with ThreadPoolExecutor(len(jobs)) as threads:
        ended = list(threads.map(lambda job: (job.script(), job.after_script()), jobs.values()))
    for leg, (script, after) in zip(jobs, ended, strict=True):
        assert (script.status, after.status) == (0, 0), (script, after)
        assert script.out.endswith(f"this is {leg}")
    _assert_nothing_is_left(checkouts)


def test_a_gitlab_job_whose_script_fails_shows_the_log_and_leaves_nothing(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    (checkouts["api"] / "api.txt").unlink()
    git(checkouts["api"], "commit", "-q", "-a", "-m", "Break it")
    job = _gitlab(make_runner("gitlab-runner"), checkouts["api"], "api", "100")
    assert job.script().status
    job.environ["CI_JOB_STATUS"] = "failed"
    after = job.after_script()
    assert after.status == 0
    assert '"GET /api.txt HTTP/1.1" 404' in after.out
    _assert_nothing_is_left(checkouts)


def test_what_a_killed_gitlab_job_left_is_taken_down_by_the_next_job_of_the_same_runner(
    make_runner: Make, checkouts: dict[str, Path]
) -> None:
    runner = make_runner("gitlab-runner")
    assert _gitlab(runner, checkouts["api"], "api", "100").script().status == 0
    left = _servers()
    assert left

    job = _gitlab(runner, checkouts["api"], "api", "101")
    script = job.script()
    assert script.status == 0, script
    assert not any(map(alive, left))
    assert job.after_script().status == 0
    _assert_nothing_is_left(checkouts)
