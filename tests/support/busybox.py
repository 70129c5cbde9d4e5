"""An image without a registry: one static busybox and a link for each of its programs."""

from __future__ import annotations

import io
import subprocess
import tarfile

from support.engines import find_program


def busybox_archive() -> bytes:
    """A tar archive of a root file system; `docker import - NAME` makes an image of it."""
    busybox = find_program("busybox")
    assert busybox is not None
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for directory in ("bin", "tmp", "etc"):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if directory == "tmp" else 0o755
            tar.addfile(entry)
        tar.add(busybox, "bin/busybox", filter=_executable)
        for name in listing.stdout.split():
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                tar.addfile(entry)
    return archive.getvalue()


def _executable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mode = 0o755
    return entry
