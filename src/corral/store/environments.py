"""Rows about environments, and about the files written for them."""

from __future__ import annotations

from corral.errors import HeldError, InvalidValueError
from corral.model.environment import Environment, Output, Place
from corral.store import encoding
from corral.store.rows import change, decode_all, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.record import BadRecord
    from corral.store.rows import Row

_PLACE = "path, kind, admin, common, main, repository, worktree, is_main, device, inode"
_SELECT = f"SELECT id, nonce, created_at, namespace, {_PLACE} FROM environment"


def _decode(row: Row) -> Environment:
    identifier, nonce, created_at, namespace, *place = row
    return Environment(
        encoding.text(identifier),
        _decode_place(place),
        encoding.text(nonce),
        encoding.number(created_at),
        encoding.text(namespace),
    )


def _decode_place(columns: list[object]) -> Place:
    *names, is_main, device, inode = columns
    path, kind, admin, common, main, repository, worktree = (encoding.text(n) for n in names)
    if "\0" in path + admin + common + main:
        raise InvalidValueError("its path holds a NUL")
    return Place(
        path,
        kind,
        admin,
        common,
        main,
        repository,
        worktree,
        bool(encoding.integer(is_main)),
        encoding.decode_unsigned(device),
        encoding.decode_unsigned(inode),
    )


def _encode_place(place: Place) -> tuple[str | int, ...]:
    return (
        *place[:7],
        int(place.is_main),
        encoding.encode_unsigned(place.device),
        encoding.encode_unsigned(place.inode),
    )


def insert(conn: Connection, environment: Environment) -> None:
    """Add an environment."""
    change(
        conn,
        f"INSERT INTO environment (id, nonce, created_at, namespace, {_PLACE}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        environment.id,
        environment.nonce,
        environment.created_at,
        environment.namespace,
        *_encode_place(environment.place),
    )


def update_place(conn: Connection, identifier: str, place: Place) -> None:
    """An environment was found elsewhere."""
    change(
        conn,
        f"UPDATE environment SET ({_PLACE}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?",
        *_encode_place(place),
        identifier,
    )


def find(conn: Connection, identifier: str) -> Environment | None:
    """One environment, None where there is none of that id that can be understood."""
    rows = fetch(conn, f"{_SELECT} WHERE id = ?", identifier)
    return next(iter(decode_all("environment", rows, _decode)[0]), None)


def exists(conn: Connection, identifier: str) -> bool:
    """Whether the id is taken, also by a row that cannot be understood."""
    return bool(fetch(conn, "SELECT 1 FROM environment WHERE id = ?", identifier))


def require(conn: Connection, identifier: str) -> None:
    """Raise HeldError when the environment was given up since it was found."""
    if not exists(conn, identifier):
        raise HeldError(
            f"the environment {identifier} was given up in the meantime",
            remedy="run it again",
            resource=identifier,
        )


def all_(conn: Connection) -> tuple[list[Environment], list[BadRecord]]:
    """Every environment, oldest first, and the rows that cannot be understood."""
    return decode_all("environment", fetch(conn, f"{_SELECT} ORDER BY created_at, id"), _decode)


def delete(conn: Connection, identifier: str) -> None:
    """Forget an environment."""
    change(conn, "DELETE FROM environment WHERE id = ?", identifier)


def record_output(conn: Connection, output: Output) -> None:
    """Remember a file that was written, or what it holds now."""
    change(
        conn,
        "INSERT OR REPLACE INTO output (environment, path, mode, digest) VALUES (?, ?, ?, ?)",
        *output,
    )


def outputs(conn: Connection, environment: str) -> list[Output]:
    """The files written for an environment, by path."""
    rows = fetch(
        conn,
        "SELECT environment, path, mode, digest FROM output WHERE environment = ? ORDER BY path",
        environment,
    )
    return decode_all("output", rows, _decode_output)[0]


def _decode_output(row: Row) -> Output:
    return Output(*(encoding.text(column) for column in row))


def forget_output(conn: Connection, environment: str, path: str) -> None:
    """Forget a file."""
    change(conn, "DELETE FROM output WHERE environment = ? AND path = ?", environment, path)
