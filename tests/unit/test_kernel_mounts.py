"""Which file system a path lies on, from texts of /proc/self/mountinfo."""

from __future__ import annotations

import pytest

from corral.kernel.paths import is_network, mount_of

_USUAL = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 0:45 / /home rw,relatime shared:7 - nfs4 server:/home rw
29 28 0:46 / /home/u/disk rw - xfs /dev/sdb1 rw
30 27 0:47 / /mnt/with\\040blank\\134and\\011tab rw master:1 propagate_from:2 - btrfs /dev/sdc rw
31 27 0:48 / /srv rw - fuse.sshfs host:/ rw
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", ("/", "ext4")),
        ("/usr/lib", ("/", "ext4")),
        ("/home", ("/home", "nfs4")),
        ("/home/u", ("/home", "nfs4")),
        ("/homework", ("/", "ext4")),
        ("/home/u/disk", ("/home/u/disk", "xfs")),
        ("/home/u/disk/deep/er", ("/home/u/disk", "xfs")),
        ("/home/u/disks", ("/home", "nfs4")),
        ("/mnt/with blank\\and\ttab/x", ("/mnt/with blank\\and\ttab", "btrfs")),
        ("/mnt", ("/", "ext4")),
        ("/srv/x", ("/srv", "fuse.sshfs")),
    ],
)
def test_a_path_lies_on_the_deepest_mount_above_it(path: str, expected: tuple[str, str]) -> None:
    assert mount_of(path, _USUAL) == expected


def test_a_mount_over_a_mount_counts_and_what_it_covers_does_not() -> None:
    text = (
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "28 27 0:1 / /a/b rw - nfs server:/b rw\n"
        "29 27 0:2 / /a rw - xfs /dev/sdb rw\n"  # later, and over both /a and /a/b
        "30 29 0:3 / /a/c rw - tmpfs none rw\n"
        "31 30 0:4 / /a/c rw - btrfs /dev/sdc rw\n"  # stacked on the one before
    )
    assert mount_of("/a/b/x", text) == ("/a", "xfs")
    assert mount_of("/a/c/x", text) == ("/a/c", "btrfs")
    assert mount_of("/b", text) == ("/", "ext4")


def test_a_root_that_is_its_own_parent_is_a_root() -> None:
    text = "1 1 0:1 / / rw - rootfs rootfs rw\n2 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    assert mount_of("/x", text) == ("/", "ext4")


@pytest.mark.parametrize(
    "text", ["", "nonsense\n", "1 2 3\n", "27 1 254:0 / /elsewhere rw - x y z"]
)
def test_where_nothing_fits_nothing_is_said(text: str) -> None:
    assert mount_of("/home", text) == ("", "")


@pytest.mark.parametrize("fs_type", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "virtiofs"])
def test_what_several_machines_share_is_a_network_file_system(fs_type: str) -> None:
    assert is_network(fs_type)


@pytest.mark.parametrize("fs_type", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "apfs", ""])
def test_what_one_machine_has_is_none(fs_type: str) -> None:
    assert not is_network(fs_type)
