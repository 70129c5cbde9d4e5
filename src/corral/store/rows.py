"""Rows of a table as values: one that cannot be understood is set aside, the rest is read."""

from __future__ import annotations

from corral.errors import InvalidValueError
from corral.model.record import BadRecord
from corral.store.encoding import bind
from corral.store.sqlite import sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from sqlite3 import Connection
    from typing import Any, TypeVar

    Value = TypeVar("Value")
    Row = tuple[Any, ...]


def fetch(conn: Connection, statement: str, *values: str | float | None) -> list[Row]:
    """All rows of a query; a text that is no UTF-8 comes as bytes."""
    try:
        return conn.execute(statement, bind(*values)).fetchall()
    except sqlite3.OperationalError as error:
        if not str(error).startswith("Could not decode to UTF-8"):
            raise
    # One damaged text makes Python refuse the whole result: read it again as bytes.
    usual, conn.text_factory = conn.text_factory, _lenient
    try:
        return conn.execute(statement, bind(*values)).fetchall()
    finally:
        conn.text_factory = usual


def _lenient(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def change(conn: Connection, statement: str, *values: str | float | None) -> int:
    """Execute one change; how many rows it touched."""
    return conn.execute(statement, bind(*values)).rowcount


def decode_all(
    where: str, rows: Iterable[Row], decode: Callable[[Row], Value]
) -> tuple[list[Value], list[BadRecord]]:
    """The values of rows whose first column is their id, and the rows that are not understood."""
    good: list[Value] = []
    bad: list[BadRecord] = []
    for row in rows:
        try:
            good.append(decode(row))
        except InvalidValueError as error:
            bad.append(BadRecord(where, shown_id(row), error.message))
    return good, bad


def shown_id(row: Row) -> str:
    """The first column, in a form that can be shown whatever it holds."""
    first = row[0]
    return first if isinstance(first, str) else repr(first)
