"""corral's block in a post-checkout hook, as text."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corral.decide.git_hook import with_block, without_block
from corral.errors import InvalidValueError

CORRAL = "/opt/my tools/bin/corral"
SHEBANGS = ["#!/bin/sh", "#! /bin/bash -eu", "#!/usr/bin/env zsh", "#!/usr/bin/env -S bash -e", ""]


def _text(script: bytes | None, program: str = CORRAL) -> bytes:
    return with_block(script, program)


def test_a_hook_that_corral_made_goes_again() -> None:
    made = _text(None)
    assert made.startswith(b"#!/bin/sh\n")
    assert b"corral='/opt/my tools/bin/corral'\n" in made
    assert without_block(made) is None
    assert without_block(made + b"echo mine\n") == b"#!/bin/sh\necho mine\n"


@given(st.sampled_from(SHEBANGS), st.booleans(), st.binary(max_size=20))
def test_a_users_script_comes_back_to_the_byte(first: str, ended: bool, rest: bytes) -> None:
    assume(b"\0" not in rest and not rest.startswith(b"#!"))
    script = first.encode() + (b"\n" + rest if ended or rest else b"")
    done = _text(script)
    assert without_block(done) == script
    assert _text(done) == done, "the second time does nothing"
    assert done.endswith(rest)
    assert done.startswith(first.encode())


def test_the_block_stands_before_what_may_end_the_script() -> None:
    done = _text(b"#!/bin/sh\nexit 0\n")
    assert done.endswith(b"# <<< corral post-checkout <<<\nexit 0\n")


def test_a_block_that_calls_another_installation_is_replaced_in_its_place() -> None:
    old = _text(b"#!/bin/sh\necho mine\n", "/old/corral")
    assert _text(old) == _text(b"#!/bin/sh\necho mine\n")


@pytest.mark.parametrize(
    "script",
    [
        b"#!/usr/bin/env python3\n",
        b"#!/usr/bin/fish\n",
        b"#!/usr/bin/env\n",
        b"#!\n",
        b"\x7fELF\0",
    ],
)
def test_what_no_posix_shell_runs_is_refused(script: bytes) -> None:
    with pytest.raises(InvalidValueError):
        _text(script)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda done: done.replace(b"# <<< corral post-checkout <<<\n", b""),
        lambda done: done.replace(b"# >>> corral post-checkout sha256=", b"# was "),
        lambda done: done.replace(b"sha256=", b"sha256=x"),
        lambda done: done + done,
        lambda done: done.replace(b"git goes on", b"oh well"),
    ],
)
def test_a_block_that_was_changed_is_left_to_its_author(spoil: object) -> None:
    changed = spoil(_text(b"#!/bin/sh\n"))  # type: ignore[operator]
    for edit in (_text, without_block):
        with pytest.raises(InvalidValueError):
            edit(changed)


def test_a_hook_without_the_block_stays() -> None:
    assert without_block(b"#!/usr/bin/env python3\n") == b"#!/usr/bin/env python3\n"
