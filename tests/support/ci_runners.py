"""CI runners as corral meets them: a process above the job, and its scripts in shells of their own.

What they do between the lines of a workflow is what their documentation says of bash on Linux.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from support.agents import Agent
from support.readers import github_runner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from support.agents import Ran
    from support.processes import Tracker

_MATRIX = re.compile(r"\$\{\{ *matrix\.(\w+) *\}\}")


class Done(NamedTuple):
    """A step that was run: its name and what it left."""

    name: str
    ran: Ran


class Runner:
    """A runner's process; what it runs are its children, and its death leaves them alone."""

    def __init__(
        self, track: Tracker, root: Path, program: str, environ: Mapping[str, str]
    ) -> None:
        self._agent = Agent(
            track, root, "", root, kind=program, pid_variable=False, environ=environ
        )
        self.pid = self._agent.pid
        self.root = root

    def run(self, *argv: str, cwd: Path, env: Mapping[str, str], text: str = "") -> Ran:
        """Run a program as the runner's child, with its standard input, and wait for it."""
        return self._agent.run(*argv, cwd=cwd, env=dict(env), input=text, timeout=300)


class GithubJob:
    """One job of a workflow, for one leg of its matrix, in a checkout that is there already.

    Each `run` is a script of its own under `bash -e`; `GITHUB_ENV` names a new file for each,
    whose variables the later ones have.
    """

    def __init__(
        self,
        runner: Runner,
        workflow: Mapping[str, Any],
        name: str,
        checkout: Path,
        environ: Mapping[str, str],
        matrix: Mapping[str, str],
    ) -> None:
        self._runner, self._job, self._checkout = runner, workflow["jobs"][name], checkout
        self._matrix = matrix
        self.environ = {
            **{key: self._filled(value) for key, value in workflow.get("env", {}).items()},
            **{key: self._filled(value) for key, value in self._job.get("env", {}).items()},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_JOB": name,
            "GITHUB_WORKSPACE": str(checkout),
            **environ,
        }

    def _filled(self, value: object) -> str:
        return _MATRIX.sub(lambda found: self._matrix[found[1]], str(value))

    def run(self, steps: Sequence[str] = ()) -> list[Done]:
        """Run the job's steps in order (or those of these names); what each left."""
        done: list[Done] = []
        for number, step in enumerate(self._job["steps"]):
            failed = any(each.ran.status for each in done)
            wanted = {"always()": True, "failure()": failed}.get(step.get("if", ""), not failed)
            if "run" not in step or not wanted or (steps and step["name"] not in steps):
                continue
            done.append(Done(step["name"], self._step(number, step)))
        return done

    def _step(self, number: int, step: Mapping[str, Any]) -> Ran:
        script = self._checkout.parent / f"step-{number}.sh"
        script.write_text(step["run"])
        file = self._checkout.parent / f"set_env-{number}"
        file.touch()
        own = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        ran = self._runner.run(
            "bash",
            "-e",
            str(script),
            cwd=self._checkout,
            env={**self.environ, **own, "GITHUB_ENV": str(file)},
        )
        self.environ.update(github_runner(file.read_text()))
        return ran


class GitlabJob:
    """One job of a pipeline under the shell executor, in a checkout that is there already.

    `before_script` and `script` are one shell, `after_script` is another one. The shell reads
    its script from its standard input and evaluates it in one more.
    """

    def __init__(
        self,
        runner: Runner,
        job: Mapping[str, Any],
        checkout: Path,
        environ: Mapping[str, str],
        matrix: Mapping[str, str],
    ) -> None:
        self._runner, self._job, self._checkout = runner, job, checkout
        variables = {key: str(value) for key, value in job.get("variables", {}).items()}
        self.environ = {**variables, **matrix, "CI": "true", "GITLAB_CI": "true", **environ}

    def script(self) -> Ran:
        """The shell of `before_script` and `script`."""
        return self._shell([*self._job.get("before_script", []), *self._job["script"]])

    def after_script(self) -> Ran:
        """The shell of `after_script`."""
        return self._shell(self._job.get("after_script", []))

    def _shell(self, lines: Sequence[str]) -> Ran:
        body = "\n".join(["set -o errexit -o pipefail", *lines])
        text = f"set -eo pipefail; set +o noclobber; : | eval {shlex.quote(body)}\nexit 0\n"
        return self._runner.run("bash", cwd=self._checkout, env=self.environ, text=text)
