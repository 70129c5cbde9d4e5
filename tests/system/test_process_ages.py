"""How old a process is: the boot clock tells, whatever became of the clock on the wall."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from corral.backends.processes import ProcessBackend
from corral.model.resource import Kind
from corral.services.context import context_in
from corral.services.view import look

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_is_as_old_as_the_kernel_says(git_repo: Path) -> None:
    view = look(context_in(str(git_repo), os.environ))
    seen = ProcessBackend().look_up(view, Kind.PROCESS, "1")
    assert seen is not None
    assert seen.created_at is not None
    assert seen.created_at == pytest.approx(psutil.Process(1).create_time(), abs=2)
    assert time.time() - seen.created_at > 2, "else this cannot tell an age from none"
