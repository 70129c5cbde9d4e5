"""SQLite's module, without what the standard package brings along.

`sqlite3` also imports datetime for adapters that no row here needs: 4 ms of a quick command's 45.
The C module below it has everything else; where an interpreter has none, the package does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
else:
    try:
        import _sqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["sqlite3"]
