"""The contract of `--json`: the envelope, and the fields of every command's data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.command import ask, corral, start

if TYPE_CHECKING:
    from pathlib import Path

    from support.command import Said

SLEEP = (sys.executable, "-c", "import signal; signal.pause()")
ENVELOPE = {"schema", "command", "result", "data", "problems"}
RESOURCE = {
    "kind", "id", "name", "backend", "owner", "session", "environment", "state", "verdict",
    "reason", "created_at", "identity",
}  # fmt: skip
ENVIRONMENT = {"id", "path", "ports", "address", "database", "files"}
REPORT = {"removed", "already_gone", "remaining", "left"}
STATUS = {
    "owner", "session", "environment", "owned", "kept", "shared", "orphans", "unknown", "backends",
}  # fmt: skip


def _checked(said: Said, command: str, result: str) -> dict[str, Any]:
    document = said.document
    assert set(document) == ENVELOPE
    assert document["schema"] == "corral/1"
    assert document["command"] == command
    assert document["result"] == result
    for problem in document["problems"]:
        assert set(problem) == {"code", "message", "resource", "remedy"}
    data: dict[str, Any] = document["data"]
    return data


def test_up_and_status_show_the_same_environment(git_repo: Path) -> None:
    up = _checked(corral(git_repo, "up", "--port", "web", "--db", "file", "--json"), "up", "ok")
    status = _checked(corral(git_repo, "status", "--json"), "status", "ok")
    assert up["environment"] == status["environment"]
    assert set(up["environment"]) == ENVIRONMENT
    assert set(up["environment"]["ports"]) == {"web"}
    assert isinstance(up["environment"]["ports"]["web"], int)


def test_status_has_its_fields_with_and_without_an_environment(git_repo: Path) -> None:
    assert set(ask(git_repo, "status")) == STATUS
    start(git_repo, *SLEEP, name="web")
    seen = ask(git_repo, "status")
    assert set(seen) == STATUS
    assert seen["owned"]
    for row in seen["owned"]:
        assert set(row) == RESOURCE
        assert row["verdict"] in {"REAP", "KEEP", "UNKNOWN"}
        assert row["reason"]
    for backend in seen["backends"]:
        assert set(backend) == {"name", "state", "detail"}
        assert backend["state"] in {"ok", "absent", "failed"}


@pytest.mark.parametrize("command", ["reap", "teardown", "cleanup", "down"])
def test_teardowns_report_in_four_lists(git_repo: Path, command: str) -> None:
    start(git_repo, *SLEEP)
    data = (
        _checked(corral(git_repo, command, "--yes", "--json", check=None), command, "ok")
        if (command in {"cleanup", "down"})
        else _checked(corral(git_repo, command, "--json"), command, "ok")
    )
    assert set(data) == REPORT
    for group in REPORT:
        for row in data[group]:
            assert set(row) == RESOURCE


@pytest.mark.parametrize("command", ["reap", "cleanup"])
def test_a_dry_run_says_what_it_would_remove(git_repo: Path, command: str) -> None:
    assert set(ask(git_repo, command, "--dry-run")) <= {*REPORT, "would_remove"}


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--nonsense"),
        ("reap", "--session"),
        ("nonsense",),
        ("cleanup", "--older-than", "soon"),
        ("cleanup", "--backend", "nonsense"),
        ("up", "--port", "web=abc"),
        ("up", "--port", "web=70000"),
        ("up", "--port", ""),
        ("session", "start", "--anchor", "999999999"),
        ("session", "end"),
        ("session", "end", "--session", "nobody"),
        ("adopt", "unicorn", "1"),
        ("adopt", "process", "999999999"),
        ("keep", "nothing"),
        ("run",),
        ("stop", "nothing"),
        ("logs", "nothing"),
        ("url", "nothing"),
        ("events", "--since", "yesterday"),
        ("status", "--env", "/nowhere/at/all"),
        ("env", "--format", "yaml"),
        ("install", "nonsense"),
        ("uninstall", "git", "--env", "/"),
    ],
)
def test_bad_input_is_refused_by_name_with_reason_and_remedy(
    git_repo: Path, state_dir: Path, words: tuple[str, ...]
) -> None:
    said = corral(git_repo, *words, "--json", check=2)
    document = said.document
    assert document["result"] == "failed"
    (problem,) = document["problems"]
    assert problem["message"]
    assert problem["remedy"]
    assert "Traceback" not in said.err
    plain = corral(git_repo, *words, check=2)
    assert plain.out == ""
    assert problem["message"] in plain.err
    assert not (state_dir / "environments").exists(), "nothing was changed"


def test_options_that_all_commands_take_may_stand_before_the_command(git_repo: Path) -> None:
    said = corral("/", "--env", str(git_repo), "--json", "status")
    assert _checked(said, "status", "ok")["environment"] is None


def test_the_other_commands_have_their_documented_fields(git_repo: Path) -> None:
    begun = ask(git_repo, "session", "start", "--session", "s")
    assert set(begun) == {"owner", "session", "epoch", "anchor", "environment"}
    (row,) = [r for r in ask(git_repo, "session", "list")["sessions"] if r["sessions"] == ["s"]]
    assert set(row) == {
        "owner", "sessions", "implicit_of", "environment", "path", "parent", "forgotten", "life",
        "reason", "epochs",
    }  # fmt: skip
    assert set(ask(git_repo, "session", "end", "--session", "s")) == REPORT
    pid = start(git_repo, *SLEEP)
    kept = ask(git_repo, "keep", f"process/{pid}")
    assert kept == {"kind": "process", "id": str(pid), "name": kept["name"], "kept": True}
    ask(git_repo, "unkeep", f"process/{pid}")
    ask(git_repo, "reap")
    event = ask(git_repo, "events")["events"][-1]
    assert set(event) == {
        "id", "at", "action", "kind", "resource", "name", "owner", "environment", "trigger",
        "proof", "detail",
    }  # fmt: skip
    doctor = ask(git_repo, "doctor")
    assert set(doctor) == {"checks", "backends"}
    assert {tuple(check) for check in doctor["checks"]} == {
        ("name", "state", "detail", "consequence", "remedy")
    }


@pytest.mark.parametrize("target", ["claude", "codex", "git"])
def test_install_and_uninstall_tell_what_changes_and_what_stays(
    git_repo: Path, target: str
) -> None:
    for command in ("install", "uninstall"):
        for words in (("--dry-run",), (), ("--yes",)):
            data = _checked(corral(git_repo, command, target, *words, "--json"), command, "ok")
            assert set(data) == {"target", "applied", "changes", "left"}
            assert data["applied"] is (words == ("--yes",) or not data["changes"])
            for change in data["changes"]:
                assert set(change) == {"path", "change", "diff"}
                assert change["change"] in {"create", "edit", "remove"}
        again = ask(git_repo, command, target)
        assert again == {"target": target, "applied": True, "changes": [], "left": []}
