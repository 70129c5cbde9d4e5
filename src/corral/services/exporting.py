"""The environment's variables in one of the formats, printed or kept in a file."""

from __future__ import annotations

import os

from corral.errors import RefusedError, UsageError
from corral.render.formats import render_text
from corral.services.variables import variables_of
from corral.store import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.model.environment import Environment
    from corral.services.context import Context
    from corral.services.outputs import Placed
    from corral.services.repository import RunProgram

Pairs = tuple[tuple[str, str], ...]


def render(
    context: Context, environment: Environment, fmt: str, *, header: bool = True
) -> tuple[Pairs, str]:
    """The variables, and the text that carries them. InvalidValueError names what it cannot."""
    with context.registry.read() as conn:
        variables = variables_of(conn, environment, context.settings)
    title = f"environment {environment.id} of {environment.place.path}"
    return variables, render_text(fmt, dict(variables), title=title, header=header)


def write(
    context: Context, environment: Environment, fmt: str, file: str, run_program: RunProgram
) -> Placed:
    """Keep the variables in a file and remember it, so that `down` removes it again.

    A dotenv file of the user's gets one block; the file that a GitHub runner names is appended to;
    any other file that is there and not corral's is refused, untouched (RefusedError).
    """
    from corral.render import dotenv
    from corral.render.variables import checked
    from corral.services import outputs
    from corral.services.building import alone
    from corral.services.environments import require
    from corral.services.repository import Repository
    from corral.services.unplacing import BLOCK, FILE

    path = _absolute(file)
    variables, text = render(context, environment, fmt)
    if fmt == "github" and os.path.lexists(path):
        return _append(path, text)
    if fmt == "dotenv" and os.path.lexists(path) and not _is_ours(context, environment, path):
        content = dotenv.lines(checked(variables)).encode()
        wanted = outputs.Wanted(path, BLOCK, content, exported=True)
        outputs.rehearse(environment.id, [wanted])
    else:
        wanted = outputs.Wanted(path, FILE, text.encode())
    repository = Repository(environment.place.path, context.environ, run_program)
    with alone(context, what="env"):
        environment = require(context)  # it may have been given up a moment ago
        placed = outputs.write_one(context, environment, wanted, repository)
    if placed.result == "left":
        raise RefusedError(
            f"{path} is left alone: {placed.reason}",
            remedy="name another file, or print it and redirect",
            resource=path,
        )
    return placed


def _is_ours(context: Context, environment: Environment, path: str) -> bool:
    """Whether all of the file was written by an earlier call."""
    from corral.services.unplacing import FILE

    with context.registry.read() as conn:
        known = environments.outputs(conn, environment.id)
    return any(output.path == path and output.mode == FILE for output in known)


def _absolute(file: str) -> str:
    directory = os.path.realpath(os.path.dirname(file) or ".")
    if not file or not os.path.isdir(directory):
        raise UsageError(
            f"--output {file!r}: there is no directory {directory}", remedy="make it first"
        )
    return os.path.join(directory, os.path.basename(file))


def _append(path: str, text: str) -> Placed:
    from corral.services.outputs import Placed

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise RefusedError(
            f"{path} cannot be appended to: {error.strerror}", resource=path
        ) from error
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
    return Placed(path, "appended")
