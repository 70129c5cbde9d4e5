"""Rows about claims: each value of a kind and scope is held once.

The claimant is the process that holds it, else the environment that it was made for.
"""

from __future__ import annotations

from corral.decide.ports import parse_port
from corral.errors import InvalidValueError
from corral.model.environment import Claim, ClaimKind
from corral.store import encoding
from corral.store.rows import change, decode_all, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from corral.model.process import ProcessIdentity
    from corral.model.record import BadRecord
    from corral.store.rows import Row

_COLUMNS = "kind, scope, value, name, environment, holder, worker, created_at, detail"
_SELECT = f"SELECT kind || '/' || scope || '/' || value, {_COLUMNS} FROM claim"
_THIS = "kind = ? AND scope = ? AND value = ?"
_INSERT = (
    f"INSERT INTO claim ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


def _decode(row: Row) -> Claim:
    _, kind, scope, value, name, environment, holder, worker, created_at, detail = row
    if kind == ClaimKind.PORT.value:
        parse_port(encoding.text(value), "the value of a port's claim")
    return Claim(
        encoding.word(ClaimKind, kind),
        encoding.text(scope),
        encoding.text(value),
        encoding.text(name),
        encoding.optional_text(environment),
        encoding.decode_process(holder),
        encoding.text(worker),
        encoding.number(created_at),
        encoding.text(detail),
    )


def take(conn: Connection, claim: Claim) -> bool:
    """Take a claim; True when it is this claimant's now, or was under the same name.

    False when it is held by another claimant, or under another name. Raises InvalidValueError for
    a claim that is nobody's.
    """
    _refuse_nobody(claim.environment, claim.holder)
    taken = change(
        conn,
        _INSERT,
        claim.kind.value,
        claim.scope,
        claim.value,
        claim.name,
        claim.environment,
        encoding.encode_process(claim.holder),
        claim.worker,
        claim.created_at,
        claim.detail,
    )
    if taken:
        return True
    rows = fetch(
        conn,
        f"SELECT environment, holder FROM claim WHERE {_THIS} AND name = ?",
        claim.kind.value,
        claim.scope,
        claim.value,
        claim.name,
    )
    return bool(rows) and _is_of(rows[0], claim.environment, claim.holder)


def _is_of(row: Row, environment: str | None, holder: ProcessIdentity | None) -> bool:
    """Whether a row of (environment, holder) is this claimant's; in doubt it is not."""
    try:
        its_environment = encoding.optional_text(row[0])
        its_holder = encoding.decode_process(row[1])
    except InvalidValueError:  # not understood: then it is nobody's to give away
        return False
    if holder is None or its_holder is None:
        return holder is its_holder and environment == its_environment
    return its_holder.matches(holder)


def _refuse_nobody(environment: str | None, holder: ProcessIdentity | None) -> None:
    if holder is None and not environment:
        raise InvalidValueError("a claim needs an environment or a process that holds it")


def of_environment(conn: Connection, environment: str) -> list[Claim]:
    """The claims of an environment, and those that its processes hold there."""
    rows = fetch(conn, f"{_SELECT} WHERE environment = ? ORDER BY created_at, value", environment)
    return decode_all("claim", rows, _decode)[0]


def of_holder(conn: Connection, holder: ProcessIdentity) -> list[Claim]:
    """The claims that a process holds."""
    first, last = encoding.encoded_process_range(holder.pid)
    rows = fetch(
        conn,
        f"{_SELECT} WHERE holder >= ? AND holder < ? ORDER BY created_at, value",
        first,
        last,
    )
    found = decode_all("claim", rows, _decode)[0]
    return [claim for claim in found if claim.holder is not None and claim.holder.matches(holder)]


def find(conn: Connection, kind: ClaimKind, scope: str, value: str) -> Claim | None:
    """Who has this, or None when nobody has.

    A row that cannot be understood is a claim of nobody's, so that it is not taken for free.
    """
    rows = fetch(conn, f"{_SELECT} WHERE {_THIS}", kind.value, scope, value)
    if not rows:
        return None
    good, bad = decode_all("claim", rows, _decode)
    return good[0] if good else Claim(kind, scope, value, "", None, None, "", 0.0, bad[0].reason)


def all_(conn: Connection) -> tuple[list[Claim], list[BadRecord]]:
    """Every claim, and the rows that cannot be understood."""
    return decode_all("claim", fetch(conn, f"{_SELECT} ORDER BY created_at, value"), _decode)


def describe(conn: Connection, claim: Claim, detail: str) -> None:
    """Change the detail of an environment's claim; nobody else's, and nothing else of it."""
    change(
        conn,
        f"UPDATE claim SET detail = ? WHERE {_THIS} AND environment = ?",
        detail,
        claim.kind.value,
        claim.scope,
        claim.value,
        claim.environment,
    )


def release(
    conn: Connection,
    kind: ClaimKind,
    scope: str,
    value: str,
    *,
    environment: str | None = None,
    holder: ProcessIdentity | None = None,
) -> bool:
    """Give a claim back; only its claimant can. True when it was given back."""
    _refuse_nobody(environment, holder)
    this = (kind.value, scope, value)
    rows = fetch(conn, f"SELECT environment, holder FROM claim WHERE {_THIS}", *this)
    if not rows or not _is_of(rows[0], environment, holder):
        return False
    return change(conn, f"DELETE FROM claim WHERE {_THIS}", *this) > 0


def release_environment(conn: Connection, environment: str) -> int:
    """Give back all claims of an environment but those that a process holds; how many."""
    return change(conn, "DELETE FROM claim WHERE environment = ? AND holder IS NULL", environment)


def taken_values(conn: Connection, kind: ClaimKind, scope_prefix: str = "") -> set[str]:
    """The values of a kind that are held in any scope that starts with `scope_prefix`.

    A row that cannot be understood holds its value like any other.
    """
    rows = fetch(
        conn,
        "SELECT value FROM claim WHERE kind = ? AND scope >= ? AND scope < ?",
        kind.value,
        scope_prefix,
        scope_prefix + "\U0010ffff",
    )
    return {str(value) for (value,) in rows}


def scopes(conn: Connection, kind: ClaimKind) -> set[str]:
    """The scopes in which anything of a kind is claimed."""
    rows = fetch(conn, "SELECT DISTINCT scope FROM claim WHERE kind = ?", kind.value)
    return {str(scope) for (scope,) in rows}
