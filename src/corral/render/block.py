"""The marked block that corral keeps in a dotenv file of the user's; no other byte is touched.

    # >>> corral ENVIRONMENT bytes=15 sha256=2abdd683 >>>
    WEB_PORT=22001
    # <<< corral ENVIRONMENT <<<

The opening mark records what removing needs: the length and digest of what stands between the
marks (so that a block whose closing mark was lost can still be told from the user's lines), whether
the file ended without a newline before, and whether corral made the file. Marks are recognised with
a carriage return at their end, for an editor may have changed all line ends.
"""

from __future__ import annotations

import re
from hashlib import sha256

from corral.errors import InvalidValueError, RefusedError
from corral.model.tuples import NamedTuple

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MARK = re.compile(
    rb"^# (?:"
    rb">>> corral (?P<opens>[A-Za-z0-9._-]+) bytes=(?P<bytes>[0-9]{1,9})"
    rb" sha256=(?P<digest>[0-9a-f]{8})(?P<joined> joined)?(?P<made> made)? >>>"
    rb"|<<< corral (?P<closes>[A-Za-z0-9._-]+) <<<"
    rb")(?P<end>\r?(?:\n|\Z))",
    re.MULTILINE,
)
_LOOKS_LIKE_A_MARK = re.compile(rb"^# (?:>>>|<<<) corral ", re.MULTILINE)


class Block(NamedTuple):
    """One block of corral's in a file: `start` and `end` are byte offsets, marks included.

    `id`: the environment it was written for. `lines`: what stands between the marks. `joined`: the
    newline before it is corral's. `made`: corral made the file. `carriage`: its mark ends in CR LF.
    """

    id: str
    start: int
    end: int
    lines: bytes
    joined: bool
    made: bool
    carriage: bool


def _closing(block_id: str) -> bytes:
    return f"# <<< corral {block_id} <<<\n".encode()


def _digest(lines: bytes) -> str:
    return sha256(lines).hexdigest()[:8]


def _written(block_id: str, lines: bytes, *, joined: bool, made: bool) -> bytes:
    facts = f"bytes={len(lines)} sha256={_digest(lines)}"
    facts += " joined" * joined + " made" * made
    return f"# >>> corral {block_id} {facts} >>>\n".encode() + lines + _closing(block_id)


def find_blocks(content: bytes, expected: bytes = b"") -> tuple[Block, ...]:
    """Every block of corral's in the file, in order.

    `expected` is what a block is about to be filled with: a block that was cut off within exactly
    these lines is recognised as well. Raises RefusedError for marks that do not pair up, where
    nobody can tell which lines are corral's.
    """
    blocks: list[Block] = []
    marks = list(_MARK.finditer(content))
    for mark, following in zip(marks, [*marks[1:], None], strict=False):
        if mark["opens"] is None:
            if not blocks or blocks[-1].end != mark.end():
                raise _unpaired(content, mark, "a closing mark without its opening mark")
        elif following and following["closes"] == mark["opens"]:
            blocks.append(_block(mark, content[mark.end() : following.start()], following.end()))
        else:
            blocks.append(_torn(content, mark, expected))
    return tuple(blocks)


def _block(mark: re.Match[bytes], lines: bytes, end: int) -> Block:
    return Block(
        mark["opens"].decode(),
        mark.start(),
        end,
        lines,
        joined=mark["joined"] is not None,
        made=mark["made"] is not None,
        carriage=mark["end"].startswith(b"\r"),
    )


def _torn(content: bytes, mark: re.Match[bytes], expected: bytes) -> Block:
    """A block without its closing mark: the lines that its digest or `expected` prove ours."""
    rest = content[mark.end() :]
    lines = rest[: int(mark["bytes"])]
    if _digest(lines).encode() == mark["digest"]:
        after = rest[len(lines) :]
        cut_off = _closing(mark["opens"].decode()).startswith(after)  # also where nothing is left
        return _block(mark, lines, len(content) if cut_off else mark.end() + len(lines))
    if expected.startswith(rest):
        return _block(mark, rest, len(content))
    raise _unpaired(content, mark, "an opening mark without its closing mark")


def _unpaired(content: bytes, mark: re.Match[bytes], what: str) -> RefusedError:
    line = content.count(b"\n", 0, mark.start()) + 1
    return RefusedError(
        f"line {line} is {what}, so corral cannot tell its lines from yours",
        remedy=f"delete line {line} and what corral wrote next to it, then run this again",
    )


def place_block(existing: bytes | None, block_id: str, lines: bytes) -> bytes:
    """The file with one block that holds `lines`; every byte outside of it stays.

    A block that is there, of whichever environment, is replaced where it stands, a further one is
    taken out; a new one goes to the end, where it wins over earlier lines. `existing` is None where
    there is no file. Raises InvalidValueError for an id or lines that cannot be told apart from the
    marks, and RefusedError for a file that is no text or whose marks do not pair up.
    """
    if not _ID.fullmatch(block_id):
        raise InvalidValueError(f"{block_id!r} is no id for a block")
    if _LOOKS_LIKE_A_MARK.search(lines):
        raise InvalidValueError(
            "a value contains a line that looks like a mark of corral's", remedy="change the value"
        )
    if lines and not lines.endswith(b"\n"):
        lines += b"\n"
    if existing is None:
        return _written(block_id, lines, joined=False, made=True)
    if b"\0" in existing:
        raise RefusedError("the file is no text in UTF-8", remedy="name another file")
    blocks = find_blocks(existing, lines)
    if not blocks:
        joined = bool(existing) and not existing.endswith(b"\n")
        head = existing + b"\n" * joined
        return head + _written(block_id, lines, joined=joined, made=False)
    first, *others = blocks
    for block in reversed(others):
        existing = _without(existing, block)
    new = _written(block_id, lines, joined=first.joined, made=first.made)
    return existing[: first.start] + new + existing[first.end :]


def remove_block(existing: bytes) -> bytes | None:
    """The file as it was without corral, or None where corral made it and nothing else is in it.

    Raises RefusedError where marks do not pair up.
    """
    blocks = find_blocks(existing)
    for block in reversed(blocks):
        existing = _without(existing, block)
    if not existing and any(block.made for block in blocks):
        return None
    return existing


def _without(content: bytes, block: Block) -> bytes:
    before, after = content[: block.start], content[block.end :]
    if block.joined and not after:
        before = before.removesuffix(b"\r\n" if block.carriage else b"\n")
    return before + after
