"""Which file system a path lies on (see proc_pid_mountinfo(5)), and whether it is there."""

from __future__ import annotations

import os
import sys

from corral.errors import EnumerationError
from corral.kernel._rawfile import read_all
from corral.model.tuples import NamedTuple

# What several machines can have mounted at once, or what a host lends to its virtual machine:
# locks, shared memory and process ids mean something else on the other side.
# fmt: off
_NETWORK = frozenset(
    {
        "9p", "acfs", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "drvfs", "fuse.cephfs",
        "fuse.gcsfuse", "fuse.glusterfs", "fuse.grpcfuse", "fuse.juicefs", "fuse.mfs",
        "fuse.osxfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse", "gfs",
        "gfs2", "glusterfs", "gpfs", "lustre", "macfuse", "moosefs", "ncpfs", "nfs", "nfs3",
        "nfs4", "ocfs2", "orangefs", "osxfuse", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs",
        "vboxsf", "virtiofs", "vmhgfs", "webdav",
    }
)
# fmt: on
_POINT, _FIELDS = 4, 5


class _Mount(NamedTuple):
    id: str
    parent: str
    point: str
    kind: str


def mount_of(path: str, mountinfo_text: str) -> tuple[str, str]:
    """The mount point and file system type that an absolute, real path lies on.

    Follows the tree of mounts, so that what a later mount covers does not count; odd lines are
    passed over. ("", "") if nothing fits.
    """
    candidates = [
        mount for line in mountinfo_text.splitlines() if (mount := _parse(line, path)) is not None
    ]
    ids = {mount.id for mount in candidates}
    roots = [mount for mount in candidates if mount.parent not in ids or mount.parent == mount.id]
    if not roots:
        return "", ""
    current = roots[-1]
    while below := [m for m in candidates if m.parent == current.id and m.id != current.id]:
        # on the way down the first one that is met is the one with the shortest path
        current = min(reversed(below), key=lambda mount: len(mount.point))
    return current.point, current.kind


def filesystem_of(path: str) -> str:
    """The type of the file system that a path lies on ("ext4", "nfs4"), "" if it is not known.

    The path need not exist. Raises EnumerationError.
    """
    real = os.path.realpath(path)
    if sys.platform != "linux":
        return _from_psutil(real)
    try:
        return mount_of(real, os.fsdecode(read_all("/proc/self/mountinfo")))[1]
    except OSError as error:
        raise EnumerationError(
            f"/proc/self/mountinfo cannot be read: {error.strerror}", remedy="mount /proc"
        ) from error


def is_network(fs_type: str) -> bool:
    """Whether a file system of this type can be mounted by several machines at once."""
    return fs_type in _NETWORK


def parent_is_mounted(path: str, recorded_device: int) -> bool:
    """Whether it is proven that the file system on which `path` was is mounted.

    `recorded_device` is the device that the path had; proof is that its nearest ancestor that is
    still there is on it. False is no proof of anything.
    """
    parent = os.path.dirname(os.path.abspath(path))
    while True:
        try:
            return os.stat(parent).st_dev == recorded_device
        except (FileNotFoundError, NotADirectoryError):
            above = os.path.dirname(parent)
            if above == parent:
                return False
            parent = above
        except OSError:  # EACCES, ESTALE, ELOOP, ...: it cannot be told
            return False


def _parse(line: str, path: str) -> _Mount | None:
    """The mount of this line if the path lies on or below its mount point."""
    left, _, right = line.partition(" - ")
    fields = left.split(" ")
    kind = right.partition(" ")[0]
    if len(fields) < _FIELDS or not kind:
        return None
    point = _unescape(fields[_POINT])
    if path != point and not path.startswith(point.rstrip("/") + "/"):
        return None
    return _Mount(fields[0], fields[1], point, kind)


def _unescape(text: str) -> str:
    """Undo what the kernel does to blanks; every backslash is one of its own escapes."""
    if "\\" not in text:
        return text
    for code, letter in (("040", " "), ("011", "\t"), ("012", "\n"), ("043", "#"), ("134", "\\")):
        text = text.replace("\\" + code, letter)
    return text


def _from_psutil(real: str) -> str:
    import psutil

    below = [
        part
        for part in psutil.disk_partitions(all=True)
        if real == part.mountpoint or real.startswith(part.mountpoint.rstrip("/") + "/")
    ]
    return max(below, key=lambda part: len(part.mountpoint)).fstype if below else ""
