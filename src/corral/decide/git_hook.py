r"""corral's block in git's `post-checkout` hook, as text: put in, and taken out again.

The block stands right after the script's first line (`#!/bin/sh`), since a script of the user's may
well end with `exit` or `exec`. It changes neither the arguments nor the status of what follows.

    # >>> corral post-checkout sha256=5f70bf18 made >>>
    ...
    # <<< corral post-checkout <<<

The opening mark records what removing needs: the digest of the lines between the marks, whether
corral made the file, and whether it ended the first line.
"""

from __future__ import annotations

import re
import shlex
from hashlib import sha256

from corral.errors import InvalidValueError
from corral.model.tuples import NamedTuple

_SHEBANG = b"#!/bin/sh\n"
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
_CLOSING = b"# <<< corral post-checkout <<<\n"
_OPENING = re.compile(
    rb"^# >>> corral post-checkout sha256=(?P<digest>[0-9a-f]{8})"
    rb"(?P<ended> ended)?(?P<made> made)? >>>\n",
    re.MULTILINE,
)
_LOOKS_LIKE_A_MARK = re.compile(rb"^# (?:>>>|<<<) corral post-checkout", re.MULTILINE)

# git passes the former HEAD, the new one, and 1 for a whole checkout. All zeros: there was none,
# so the worktree is new. GIT_DIR and its like would lead every git call to one repository.
_LINES = """\
# Brings a new worktree up, and nothing else; `corral uninstall git` takes these lines out.
case "${{3-}} ${{1:-none}}" in
"1 "*[!0]*) ;;
"1 "*)
    (
        for name in $(env | sed -n 's/^\\(GIT_[A-Za-z0-9_]*\\)=.*/\\1/p'); do
            unset "$name"
        done
        corral={program}
        [ -x "$corral" ] || corral=$(command -v corral) || exit 0
        "$corral" up </dev/null >&2 ||
            echo "corral: this worktree is not up; git goes on. Later: corral up" >&2
    ) || :
    ;;
esac
"""


class _Block(NamedTuple):
    """The block in a file: offsets with its marks, and what its opening mark says."""

    start: int
    end: int
    changed: bool
    ended: bool
    made: bool


def with_block(script: bytes | None, program: str) -> bytes:
    """The hook with the block that calls `program`, corral's absolute path; None: no hook yet.

    Raises InvalidValueError for a hook that is no shell script, whose marks do not pair up, or
    whose block somebody changed.
    """
    lines = _LINES.format(program=shlex.quote(program)).encode("utf-8", "surrogateescape")
    if script is None:
        return _SHEBANG + _written(lines, ended=False, made=True)
    block = _find(script)
    if block is not None:
        if block.changed:
            raise InvalidValueError("has a block of corral's that somebody changed")
        new = _written(lines, ended=block.ended, made=block.made)
        return script[: block.start] + new + script[block.end :]
    _check_shell(script)
    if not script.startswith(b"#!"):
        return _written(lines, ended=False, made=False) + script
    first, newline, rest = script.partition(b"\n")
    return first + b"\n" + _written(lines, ended=not newline, made=False) + rest


def without_block(script: bytes) -> bytes | None:
    """The hook as it was without corral; None where corral made it and nothing else is in it.

    Raises InvalidValueError where the marks do not pair up, or somebody changed the block.
    """
    block = _find(script)
    if block is None:
        return script
    if block.changed:
        raise InvalidValueError("has a block of corral's that somebody changed")
    before, after = script[: block.start], script[block.end :]
    if block.made and before == _SHEBANG and not after:
        return None
    if block.ended and not after:
        before = before.removesuffix(b"\n")
    return before + after


def _written(lines: bytes, *, ended: bool, made: bool) -> bytes:
    facts = f"sha256={_digest(lines)}" + " ended" * ended + " made" * made
    return f"# >>> corral post-checkout {facts} >>>\n".encode() + lines + _CLOSING


def _digest(lines: bytes) -> str:
    return sha256(lines).hexdigest()[:8]


def _find(script: bytes) -> _Block | None:
    """The one block of a hook, or None. Raises InvalidValueError for marks that do not pair up."""
    marks = _LOOKS_LIKE_A_MARK.findall(script)
    opening = _OPENING.search(script)
    if not marks:
        return None
    end = script.find(_CLOSING, opening.end()) if opening else -1
    if opening is None or end < 0 or len(marks) != 2:  # noqa: PLR2004 (an opening and a closing)
        raise InvalidValueError("has marks of corral that do not pair up")
    return _Block(
        opening.start(),
        end + len(_CLOSING),
        changed=_digest(script[opening.end() : end]).encode() != opening["digest"],
        ended=opening["ended"] is not None,
        made=opening["made"] is not None,
    )


def _check_shell(script: bytes) -> None:
    """See that a POSIX shell runs the script: git runs one without a first line by `sh`."""
    if b"\0" in script:
        raise InvalidValueError("is a program and no shell script")
    if not script.startswith(b"#!"):
        return
    line = script.partition(b"\n")[0].removeprefix(b"#!").decode("utf-8", "replace")
    words = [word for word in line.split() if not word.startswith("-") and "=" not in word]
    names = [word.rsplit("/", 1)[-1] for word in words]
    if names[:1] == ["env"]:
        names = names[1:]
    if not names or names[0] not in _SHELLS:
        raise InvalidValueError(f"is no shell script: it begins with #!{line.strip()}")
