"""A log on a full disk is cut all the same: what fills the disk must not go on filling it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PROGRAM = """
import os, subprocess
from corral.services.service_log import cut_log, log_path, previous, start_log
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", "."], check=True)
path = log_path(os.getcwd() + "/.", "web")
writer = start_log(path)
os.write(writer, b"x" * 900_000)
assert cut_log(path, 500_000)
os.write(writer, b"more")
print(open(path).read(), os.listdir(os.path.dirname(path)))
"""


def test_a_log_on_a_full_disk_is_cut_and_leaves_no_draft(
    private_root: Path, require_engine: Callable[[str], None]
) -> None:
    require_engine("namespaces")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", _PROGRAM],
        cwd=private_root, capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == "more ['web.log']\n"
