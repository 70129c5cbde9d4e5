"""All that touches files and directories where a symlink, a mount or a crash could lead astray."""

from __future__ import annotations

from corral.kernel.files import FileWriteError, atomic_write, open_directory, read_regular
from corral.kernel.mounts import filesystem_of, is_network, mount_of, parent_is_mounted
from corral.kernel.trees import make_marked_directory, read_nonce, remove_tree

__all__ = [
    "FileWriteError",
    "atomic_write",
    "filesystem_of",
    "is_network",
    "make_marked_directory",
    "mount_of",
    "open_directory",
    "parent_is_mounted",
    "read_nonce",
    "read_regular",
    "remove_tree",
]
