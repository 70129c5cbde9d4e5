"""Placeholders in a command's words stand for what it is given, and nothing else is touched."""

from __future__ import annotations

import pytest

from corral.decide.placeholders import Handed, fill, unfilled

_WEB, _API = Handed("web", 22001, 3), Handed("api", 22002)


def test_the_first_port_needs_no_name() -> None:
    argv = ("serve", "--port", "{port}", "--bind={host}:{port}")
    assert fill(argv, "127.0.0.1", (_WEB, _API)) == (
        "serve", "--port", "22001", "--bind=127.0.0.1:22001",
    )  # fmt: skip


def test_each_port_has_its_name() -> None:
    argv = ("{port.web}", "{port.api}", "{fd.web}")
    assert fill(argv, "127.0.0.1", (_WEB, _API)) == ("22001", "22002", "3")


def test_a_descriptor_is_filled_in_only_where_one_is_handed_over() -> None:
    assert fill(("{fd}",), "127.0.0.1", (_WEB,)) == ("3",)
    assert fill(("{fd}",), "127.0.0.1", (_API,)) == ("{fd}",)


def test_without_ports_the_words_are_the_commands_own() -> None:
    argv = ("python", "-c", 'print(f"{port} {host}")')
    assert fill(argv, "127.0.0.1", ()) == argv


def test_other_braces_are_the_commands_own() -> None:
    argv = ("awk", "{print $1}", "{}", "{ports}", "{port.other}", "{Port}")
    assert fill(argv, "127.0.0.1", (_WEB,)) == argv


def test_a_shells_variable_and_a_templates_braces_are_their_own() -> None:
    argv = ("sh", "-c", "echo ${port} {port} ${port.web}", "{{port}}")
    assert fill(argv, "127.0.0.1", (_WEB,)) == (
        "sh", "-c", "echo ${port} 22001 ${port.web}", "{{port}}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("serve", "{port}"), "{port}"),
        (("serve", "--listen=0:{port.api}"), "{port.api}"),
        (("serve", "{fd}"), "{fd}"),
        (("serve", "{fd.web}/{port}"), "{port}"),
        (("serve", "{ports}{portly.x}{fdx}{port"), ""),
        (("serve", "${port}", "{{port}}"), ""),
        (("python", "-c", 'print(f"{port} {x}")'), ""),
        (("serve", ""), ""),
    ],
)
def test_what_stands_for_a_port_that_was_not_given_is_found(
    words: tuple[str, ...], left: str
) -> None:
    assert unfilled(words) == left
