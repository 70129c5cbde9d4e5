"""One frozen settings type; every field with its source."""

from __future__ import annotations

from corral.config.loading import load_settings, project_root, user_file, with_flags
from corral.config.settings import CommandSource, DatabaseSettings, PortWish, Settings

__all__ = [
    "CommandSource",
    "DatabaseSettings",
    "PortWish",
    "Settings",
    "load_settings",
    "project_root",
    "user_file",
    "with_flags",
]
