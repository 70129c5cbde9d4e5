"""On a full disk nothing is started, and the error says what to do."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A mount namespace of its own: the state directory is on a disk that is then filled to the brim.
_SCRIPT = """
set -e
mount -t tmpfs -o size=512k,mode=0700 none "$CORRAL_STATE_DIR"
"$0" -m corral.cli.main run -- true
dd if=/dev/zero of="$CORRAL_STATE_DIR/filler" bs=1k 2>/dev/null || true
set +e
"$0" -m corral.cli.main run "$@" -- touch ran
echo "status $?"
rm "$CORRAL_STATE_DIR/filler"
"$0" -m corral.cli.main run "$@" -- touch again
echo "status $?"
"""


@pytest.mark.parametrize("options", [(), ("--detach",)], ids=["foreground", "detached"])
def test_what_cannot_be_recorded_is_not_started(
    private_root: Path,
    state_dir: Path,
    require_engine: Callable[[str], None],
    options: tuple[str, ...],
) -> None:
    require_engine("namespaces")
    place = private_root / "place"
    place.mkdir()
    state_dir.mkdir(mode=0o700)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", _SCRIPT, sys.executable, *options],
        cwd=place, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    first, second = (line for line in done.stdout.splitlines() if line.startswith("status"))
    assert first == "status 2"
    assert "full" in done.stderr
    assert not (place / "ran").exists()
    assert second == "status 0"
    eventually((place / "again").exists)
