"""What is installed holds what the commands need, not only the modules."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "src/corral/integrations"
_FILES = sorted(
    str(path.relative_to(_SOURCE))
    for agent in ("claude", "codex")
    for path in (_SOURCE / agent).rglob("*")
    if path.is_file()
)


def _build(kind: str, where: Path, directory: Path) -> Path:
    pytest.importorskip("hatchling", reason="the build backend; make test installs it")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(directory)]
    subprocess.run(argv, cwd=where, check=True, capture_output=True)
    (built,) = directory.iterdir()
    return built


def _shipped(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("through_sdist", [False, True])
def test_the_plugins_are_in_the_wheel_each_file_whole(
    private_root: Path, through_sdist: bool
) -> None:
    where = _ROOT
    if through_sdist:
        with tarfile.open(_build("sdist", _ROOT, private_root / "sdist")) as archive:
            archive.extractall(private_root / "source", filter="data")
        (where,) = (private_root / "source").iterdir()
    shipped = _shipped(_build("wheel", where, private_root / "wheel"))
    assert len(_FILES) == 7
    for name in _FILES:
        assert shipped[f"corral/integrations/{name}"] == (_SOURCE / name).read_bytes(), name
