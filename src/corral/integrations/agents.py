"""`corral install claude|codex`: hooks in the agent's settings, and the skill among the user's."""

from __future__ import annotations

import os
from hashlib import sha256

from corral.decide.agent_settings import Form, with_hooks, without_hooks
from corral.decide.receipt import DIRECTORIES, Receipt, decode, encode
from corral.errors import InvalidValueError, NotFoundError
from corral.integrations.config_files import Change, Left, Plan, find, needed
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.integrations.config_files import Found

_SKILL = "skills/corral/SKILL.md"
_RECEIPT = "corral-installed.json"
_NOTHING = "{}\n"


class Agent(NamedTuple):
    """Where an agent keeps what is the user's own.

    `variable` names its directory, `directory` is the default below the home directory.
    """

    form: Form
    variable: str
    directory: str
    settings: str


AGENTS = {
    "claude": Agent(Form("claude", in_words=True), "CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    "codex": Agent(Form("codex", in_words=False), "CODEX_HOME", ".codex", "hooks.json"),
}


class _Files(NamedTuple):
    """The files of one agent that corral has to do with, and what it noted there."""

    home: str
    settings: Found
    skill: Found
    receipt: Found
    noted: Receipt


def install(name: str, program: str, environ: Mapping[str, str], home: str) -> Plan:
    """What makes the agent call `program` (an absolute path) and gives it the skill.

    Raises InvalidValueError for a file that cannot be edited.
    """
    agent = AGENTS[name]
    files = _files(agent, environ, home)
    _check_text(program)
    _check_receipt(files.receipt)
    before = _text(files.settings)
    try:
        edit = with_hooks(_NOTHING if before is None else before, agent.form, program)
    except InvalidValueError as error:
        raise _not_edited(files.settings, error) from error
    settings = None if edit.text == _NOTHING and before is None else edit.text.encode()
    skill, left = _new_skill(files, packaged_skill(name))
    wanted = needed(Change(files.skill, skill, own=True), Change(files.settings, settings))
    noted = Receipt(
        _digest(skill) if skill != files.skill.content else files.noted.skill,
        files.noted.settings or (before is None and settings is not None),
        _directories(files),
        {**edit.empty, **files.noted.empty},
    )
    # The receipt comes first: whatever is made after it can be told from the user's own.
    receipt = needed(Change(files.receipt, encode(noted), own=True)) if wanted else ()
    return Plan((*receipt, *wanted), (*left, *_by_hand(files, edit.by_hand)))


def uninstall(name: str, environ: Mapping[str, str], home: str) -> Plan:
    """What takes exactly that out again. Raises InvalidValueError as `install` does."""
    agent = AGENTS[name]
    files = _files(agent, environ, home)
    before = _text(files.settings)
    try:
        edit = without_hooks(_NOTHING if before is None else before, agent.form, files.noted.empty)
    except InvalidValueError as error:
        raise _not_edited(files.settings, error) from error
    made = files.noted.settings and not os.path.islink(files.settings.path)
    gone = before is None or (made and edit.text.strip() == _NOTHING.strip())
    skill, left = _without_skill(files, name)
    known = decode(files.receipt.content or b"") is not None
    wanted = needed(
        Change(files.settings, None if gone else edit.text.encode()),
        Change(files.skill, skill, own=True),
        Change(files.receipt, None if known else files.receipt.content, own=True),
    )
    emptied = tuple(
        os.path.normpath(os.path.join(files.home, directory))
        for directory in reversed(files.noted.directories)
    )
    return Plan(wanted, (*left, *_by_hand(files, edit.by_hand)), emptied=emptied)


def packaged_skill(name: str) -> bytes:
    """The text of the skill that comes with corral."""
    path = _packaged(name)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NotFoundError(
            f"{path}, a part of corral, cannot be read: {error.strerror}",
            remedy="install corral anew",
        ) from error


def _packaged(name: str) -> str:
    return os.path.join(os.path.dirname(__file__), name, _SKILL)


def _files(agent: Agent, environ: Mapping[str, str], home: str) -> _Files:
    named = environ.get(agent.variable, "")
    directory = os.path.abspath(named) if named else os.path.join(home, agent.directory)
    receipt = find(os.path.join(directory, _RECEIPT), mode=0o600)
    return _Files(
        directory,
        find(os.path.join(directory, agent.settings), mode=0o600),
        find(os.path.join(directory, _SKILL), mode=0o644),
        receipt,
        decode(receipt.content or b"") or Receipt(),
    )


def _check_receipt(file: Found) -> None:
    if file.content is not None and decode(file.content) is None:
        raise InvalidValueError(
            f"{file.path} is not what corral writes there, so it is not overwritten",
            remedy="move it aside, then run it again",
            resource=file.path,
        )


def _text(file: Found) -> str | None:
    if file.content is None:
        return None
    try:
        return file.content.decode()
    except UnicodeDecodeError as error:
        raise _not_edited(file, InvalidValueError("is no text in UTF-8")) from error


def _not_edited(file: Found, error: InvalidValueError) -> InvalidValueError:
    return InvalidValueError(
        f"{file.path} {error.message}, so it is left as it is",
        remedy="mend it, then run this again",
        resource=file.path,
    )


def _check_text(program: str) -> None:
    try:
        program.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(
            f"{program!r} is no text in UTF-8, so JSON cannot name it",
            remedy="install corral below a directory whose name is text",
        ) from error


def _new_skill(files: _Files, packaged: bytes) -> tuple[bytes, tuple[Left, ...]]:
    """The skill as it should be, unless it is somebody else's or was changed."""
    there = files.skill.content
    if there in {None, packaged} or _digest(there or b"") == files.noted.skill:
        return packaged, ()
    return there or b"", (Left(files.skill.path, _why_kept(files)),)


def _without_skill(files: _Files, name: str) -> tuple[bytes | None, tuple[Left, ...]]:
    there = files.skill.content
    if there is None:
        return None, ()
    if _digest(there) == files.noted.skill and not _is_elsewhere(files.skill, name):
        return None, ()
    return there, (Left(files.skill.path, _why_kept(files)),)


def _why_kept(files: _Files) -> str:
    if files.noted.skill and _digest(files.skill.content or b"") != files.noted.skill:
        return "it was changed since corral wrote it"
    return "corral did not write it"


def _is_elsewhere(skill: Found, name: str) -> bool:
    """Whether a link was put in the skill's place: to some file, or to corral's own directory."""
    return os.path.islink(skill.path) or skill.target == os.path.realpath(_packaged(name))


def _by_hand(files: _Files, events: tuple[str, ...]) -> tuple[Left, ...]:
    if not events:
        return ()
    reason = (
        f"its entry for {' and '.join(events)} calls corral in a form that corral did not write"
    )
    return (Left(files.settings.path, reason),)


def _directories(files: _Files) -> tuple[str, ...]:
    """Those directories that corral made, or is about to make."""
    return tuple(
        each
        for each in DIRECTORIES
        if each in files.noted.directories or not os.path.lexists(os.path.join(files.home, each))
    )


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
