"""Which processes are corral's microVMs, and whose: one test for each proof and each doubt."""

from __future__ import annotations

from typing import Any

import pytest

from corral.decide.microvms import (
    Known,
    RunDirectory,
    Running,
    directory_below,
    directory_of,
    is_firecracker,
    nonce_of,
    read_microvm_call,
    run_directory,
    sight_directory,
    sight_microvm,
    with_directory,
)
from corral.model.record import Record, RecordState
from corral.model.resource import Kind, Mark, Proof

ROOT = "/state/run"
PATH = f"{ROOT}/vm-1"
IDENTITY = (("pid", 7), ("start_ticks", 5), ("boot_id", "b"), ("pid_namespace", 1))


def record(**fields: Any) -> Record:
    made = Record(
        id="rec-1",
        kind=Kind.MICROVM,
        backend="firecracker",
        role="run directory",
        name="vm-1",
        owner="own-1",
        session=None,
        environment="env-1",
        state=RecordState.INTENT,
        identity=(("path", PATH), ("nonce", "n1")),
        creator=None,
        created_at=50.0,
    )
    return made._replace(**fields)


def known(**fields: Any) -> Known:
    made = Known({PATH: record()}, environments=frozenset({"env-1"}))
    return made._replace(**fields)


VM = Running(7, (*IDENTITY, ("pidfd_inode", 9)), PATH)
THERE = RunDirectory(PATH, there=True, nonce="n1")
GONE = RunDirectory(PATH, there=False)


@pytest.mark.parametrize(
    ("argv", "exe", "is_one"),
    [
        (("firecracker", "--no-api"), "", True),
        (("/opt/firecracker-v1.12.1-x86_64",), "", True),
        (("sandbox",), "/opt/firecracker", True),
        ((), "/firecracker", True),
        (("python", "firecracker"), "/usr/bin/python", False),
        (("firecracker-helper",), "", False),
        ((), "", False),
    ],
)
def test_firecracker_is_known_by_its_program(
    argv: tuple[str, ...], exe: str, *, is_one: bool
) -> None:
    assert is_firecracker(argv, exe) is is_one


@pytest.mark.parametrize(
    ("words", "directory"),
    [
        (("--config-file", f"{PATH}/vm.json"), PATH),
        (("--no-api", f"--config-file={PATH}/a/b.json"), PATH),
        (("--api-sock", f"{PATH}/s"), PATH),
        (("--config-file", "/else/vm.json", "--api-sock", f"{PATH}/s"), PATH),
        (("--config-file", f"{ROOT}/vm.json"), ""),
        (("--config-file", f"{ROOT}/../vm-1/vm.json"), ""),
        (("--config-file", f"{ROOT}-other/vm-1/vm.json"), ""),
        (("--config-file", "run/vm-1/vm.json"), ""),
        (("--config-file", f"x {PATH}/vm.json"), ""),
        (("--log-path", f"{PATH}/log"), ""),
        (("--config-file",), ""),
        ((), ""),
    ],
)
def test_the_run_directory_is_the_one_that_an_exact_path_lies_in(
    words: tuple[str, ...], directory: str
) -> None:
    assert run_directory(("firecracker", *words), ROOT) == directory


def test_a_path_with_dots_is_where_it_leads() -> None:
    assert directory_below(f"{ROOT}/x/../vm-1/vm.json", f"{ROOT}/") == PATH


def test_a_process_that_shows_no_arguments_leads_nowhere() -> None:
    assert run_directory((), ROOT) == ""


def test_a_call_with_a_configuration_is_moved_into_a_run_directory() -> None:
    argv = ("firecracker", "--config-file", "vm.json", "--level", "Info")
    call = read_microvm_call(argv)
    assert call is not None
    assert with_directory(argv, call, f"{PATH}/vm.json", f"{PATH}/s") == (
        *("firecracker", "--config-file", f"{PATH}/vm.json", "--level", "Info"),
        *("--api-sock", f"{PATH}/s"),
    )
    assert "--api-sock" not in with_directory(argv, call, f"{PATH}/vm.json", "")


@pytest.mark.parametrize("option", [("--no-api",), ("--api-sock", "/mine")])
def test_a_socket_that_the_user_decided_on_stays(option: tuple[str, ...]) -> None:
    argv = ("firecracker", *option, "--config-file", "vm.json")
    call = read_microvm_call(argv)
    assert call is not None
    moved = with_directory(argv, call, f"{PATH}/vm.json", f"{PATH}/s")
    assert moved == ("firecracker", *option, "--config-file", f"{PATH}/vm.json")


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("firecracker",),
        ("firecracker", "--version"),
        ("firecracker", "--api-sock", "/x"),
        ("firecracker", "--config-file"),
        ("vmm", "--config-file", "x"),
    ],
)
def test_a_call_without_a_configuration_is_left_alone(argv: tuple[str, ...]) -> None:
    assert read_microvm_call(argv) is None


def test_a_microvm_in_a_recorded_directory_is_the_owners() -> None:
    seen = sight_microvm(VM, THERE, known(), "firecracker")
    assert seen.marks == (Mark(Proof.ARGV, "own-1", None, "env-1"),)
    assert (seen.kind, seen.id, seen.doubts) == (Kind.MICROVM, "vm-1", ())
    assert (seen.created_at, seen.record, seen.identity) == (50.0, None, VM.identity)


def test_a_recorded_process_is_the_owners_whatever_became_of_its_directory() -> None:
    process = record(id="rec-2", name="sandbox", environment="gone", identity=IDENTITY)
    around = known(directories={}, processes={IDENTITY: process})
    seen = sight_microvm(VM, THERE, around, "firecracker")
    assert seen.marks[0] == Mark(Proof.RECORDED, "own-1")
    assert (seen.name, seen.record, seen.doubts) == ("sandbox", "rec-2", ())


def test_a_microvm_whose_run_directory_is_gone_says_so() -> None:
    seen = sight_microvm(VM, GONE, known(), "firecracker")
    assert seen.marks == (Mark(Proof.RUN_DIRECTORY_GONE, "own-1", None, "env-1"),)
    nobodys = sight_microvm(VM, GONE, known(directories={}), "firecracker")
    assert nobodys.marks == (Mark(Proof.RUN_DIRECTORY_GONE),)
    assert nobodys.doubts == ()
    assert nobodys.created_at is None


def test_a_directory_that_no_record_knows_is_doubted() -> None:
    seen = sight_microvm(VM, THERE, known(directories={}), "firecracker")
    assert seen.doubts == ("the registry knows no microVM of this run directory",)


@pytest.mark.parametrize("nonce", [None, "other"])
def test_a_directory_that_was_made_again_is_doubted(nonce: str | None) -> None:
    remade = RunDirectory(PATH, there=True, nonce=nonce)
    seen = sight_directory(remade, known(), None, "firecracker")
    assert seen.doubts == ("its run directory does not bear the nonce that the registry knows",)


def test_an_unused_run_directory_is_the_owners_by_its_nonce() -> None:
    seen = sight_directory(THERE, known(), None, "firecracker")
    assert seen.marks == (Mark(Proof.PATH, "own-1", None, "env-1"),)
    assert seen.identity == (("path", PATH), ("nonce", "n1"))
    assert (seen.kind, seen.state, seen.record) == (Kind.DIRECTORY, "unused", "rec-1")
    assert not seen.creating


def test_a_run_directory_that_is_being_filled_is_left() -> None:
    around = known(creating=frozenset({"rec-1"}))
    assert sight_directory(THERE, around, None, "firecracker").creating
    running = sight_microvm(VM, THERE, around, "firecracker")
    assert not sight_directory(THERE, around, running, "firecracker").creating


@pytest.mark.parametrize("by_name", [True, False])
def test_what_keeps_a_microvm_keeps_its_directory(*, by_name: bool) -> None:
    around = known(kept=frozenset({"vm-1"} if by_name else ()))
    running = sight_microvm(VM._replace(keep=not by_name), THERE, around, "firecracker")
    assert running.kept
    assert sight_directory(THERE, around, running, "firecracker").kept


def test_the_directory_of_a_doubted_microvm_is_doubted_too() -> None:
    running = sight_microvm(VM, THERE, known(directories={}), "firecracker")
    seen = sight_directory(THERE, known(), running, "firecracker")
    assert seen.state == "in use"
    assert seen.doubts == (f"its microVM is left: {running.doubts[0]}",)
    unknown = sight_directory(THERE, known(directories={}), None, "firecracker")
    assert (unknown.record, unknown.created_at) == (None, None)


def test_a_record_names_its_directory_and_nonce() -> None:
    assert (directory_of(record()), nonce_of(record())) == (PATH, "n1")
    assert (directory_of(record(identity=())), nonce_of(record(identity=()))) == ("", "")
