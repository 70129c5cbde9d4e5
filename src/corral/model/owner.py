"""Owners, their session ids and their epochs."""

from __future__ import annotations

from enum import Enum

from corral.model.process import ProcessIdentity
from corral.model.tuples import NamedTuple


class End(NamedTuple):
    """When an epoch was first seen to be over, on the boot clock.

    `boottime`: seconds since boot, suspension included; `suspended`: seconds spent suspended
    until then, so that a wake since shows; `boot_id` names the boot.
    """

    boottime: float
    suspended: float
    boot_id: str


class Epoch(NamedTuple):
    """One start of an owner. `anchor` is the process whose death ends it, or None."""

    id: int
    owner: str
    environment: str | None
    agent: str
    opened_at: float
    boot_id: str
    anchor: ProcessIdentity | None
    released_at: float | None
    released_why: str
    end: End | None


class Owner(NamedTuple):
    """One worker. `implicit_of` is the environment whose implicit owner it is, or None."""

    id: str
    implicit_of: str | None
    parent: str | None
    created_at: float
    sessions: tuple[str, ...] = ()
    epochs: tuple[Epoch, ...] = ()


class Life(Enum):
    """What is proven of an owner: it lives, its grace runs, or it is over."""

    LIVE = "live"
    GRACE = "grace"
    OVER = "over"


class OwnerState(NamedTuple):
    """An owner with what is proven of its life, and the reason in words."""

    owner: Owner
    life: Life
    reason: str
    anchored: bool
    environments: frozenset[str] = frozenset()
