from __future__ import annotations

import pytest

from corral.decide.project_places import read_directories, still_of, write_directories


def test_directories_come_back_as_they_were_written() -> None:
    assert read_directories(write_directories(["/b c", "/ä"])) == {"/b c", "/ä"}


@pytest.mark.parametrize(
    "detail", ["", "in words", "{", "{}", '{"directories": "x"}', "[]", '{"directories": null}']
)
def test_any_other_detail_remembers_nothing(detail: str) -> None:
    assert read_directories(detail) == frozenset()


def test_what_is_no_path_is_passed_over() -> None:
    assert read_directories('{"directories": ["/a", 3]}') == {"/a"}


PATHS = {"e1": "/repo", "e2": "/repo/.trees/x", "e3": "/"}


@pytest.mark.parametrize(
    ("environment", "directory", "true"),
    [
        ("e1", "/repo", True),
        ("e1", "/repo/deploy", True),
        ("e1", "/repo/.trees/x", False),
        ("e1", "/repo/.trees/x/deploy", False),
        ("e2", "/repo/.trees/x/deploy", True),
        ("e1", "/repository", False),
        ("e3", "/repository", True),
    ],
)
def test_a_directory_belongs_to_the_environment_that_it_lies_in_now(
    environment: str, directory: str, true: bool
) -> None:
    assert (directory in still_of(environment, [directory], PATHS)) is true


def test_a_directory_outside_of_every_environment_stays_remembered() -> None:
    assert still_of("e2", ["/moved/away"], {"e2": "/repo"}) == {"/moved/away"}
