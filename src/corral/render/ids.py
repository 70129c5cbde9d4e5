"""The plain names that the stateless functions derive from a worktree's id.

They are readable and safe for any id, but two ids may share one (`a/b` and `a-b`): the digits of a
hash are added only where the id had to be cut or nothing of it is left. Names that are *claimed*
(`decide.naming.claimed_name`) never coincide.
"""

from __future__ import annotations

from corral.decide.naming import digest8, slug
from corral.errors import InvalidValueError

NAMESPACE = "corral"
LIMIT = 63  # bytes: PostgreSQL identifiers, Docker names as DNS labels
_NAMESPACE_LIMIT = 20
_NAMESPACE_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_SUFFIX_LIMIT = 20
_SEPARATOR = "_"


def check_worktree_id(worktree_id: object) -> str:
    """The id if it is text with something in it, else an InvalidValueError."""
    if not isinstance(worktree_id, str) or not worktree_id.strip():
        raise InvalidValueError(
            f"worktree_id: {worktree_id!r} names no worktree", remedy="give a text, not empty"
        )
    return worktree_id


def check_namespace(namespace: object) -> str:
    """The namespace if a name can begin with it: 1 to 20 lower-case letters, digits, - and _."""
    if (
        isinstance(namespace, str)
        and 0 < len(namespace) <= _NAMESPACE_LIMIT
        and _NAMESPACE_LETTERS.issuperset(namespace)
        and namespace[0].isalnum()
    ):
        return namespace
    raise InvalidValueError(
        f"namespace: {namespace!r} cannot begin a name",
        remedy=f"use at most {_NAMESPACE_LIMIT} lower-case letters, digits, - and _",
    )


def _joined(prefix: str, text: str, suffix: str = "") -> str:
    """`prefix_text_suffix`, with digits after the text if it was cut or left empty."""
    body, tail = slug(text, _SEPARATOR), slug(suffix, _SEPARATOR)
    if suffix and not tail:
        tail = digest8(suffix)
    name = _SEPARATOR.join(filter(None, (prefix, body, tail)))
    if body and len(name) <= LIMIT:
        return name
    digits = digest8(f"{text}\0{suffix}" if suffix else text)
    tail = tail[:_SUFFIX_LIMIT].rstrip(_SEPARATOR)
    room = LIMIT - sum(len(part) + 1 for part in (prefix, digits, tail) if part)
    body = body[:room].rstrip(_SEPARATOR)
    return _SEPARATOR.join(filter(None, (prefix, body, digits, tail)))


def schema_name(worktree_id: str, *, namespace: str = NAMESPACE) -> str:
    """A PostgreSQL schema for the worktree: `worktree_<id>`, at most 63 bytes.

    Lower-case letters, digits and underscores only, so it needs no quotes in SQL. `namespace` is
    checked and does not change the name: `worktree` stands in its place.
    Raises InvalidValueError for an empty id.
    """
    check_namespace(namespace)
    return _joined("worktree", check_worktree_id(worktree_id))


def container_name(worktree_id: str, suffix: str = "", *, namespace: str = NAMESPACE) -> str:
    """A name for a container or volume: `<namespace>_<id>` or `<namespace>_<id>_<suffix>`.

    At most 63 bytes of lower-case letters, digits and underscores. Raises InvalidValueError for an
    empty id or a namespace that cannot begin a name.
    """
    prefix = slug(check_namespace(namespace), _SEPARATOR)
    return _joined(prefix, check_worktree_id(worktree_id), suffix)
