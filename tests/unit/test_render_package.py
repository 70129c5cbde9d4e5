from __future__ import annotations

import subprocess
import sys

import pytest

import corral.render


@pytest.mark.parametrize("name", corral.render.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(corral.render, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        corral.render.nothing  # noqa: B018


def test_quoting_for_a_shell_loads_no_other_format() -> None:
    code = (
        "import sys; from corral.render import quote_for_shell\n"
        "assert quote_for_shell('a b') == \"'a b'\"\n"
        "mine = {m for m in sys.modules if m.startswith('corral.render.')}\n"
        "assert mine == {'corral.render.shell', 'corral.render.variables'}, mine"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
