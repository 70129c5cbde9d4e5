"""`down`: give an environment up, in one piece under the lifecycle lock.

First what lives goes. Only when nothing of the environment is left, its directory, files and claims
go as well, and it is forgotten; otherwise it stays, so that what was left is still known by it.
"""

from __future__ import annotations

import os

from corral.decide.calling import called
from corral.decide.judge import Request, Trigger
from corral.errors import ForeignError, NotFoundError
from corral.kernel import trees
from corral.model.resource import Kind
from corral.model.tuples import NamedTuple
from corral.services import building, lifecycle, witnesses
from corral.services import owners as rules
from corral.services.environments import find
from corral.services.outputs import remove_outputs
from corral.services.places import ID_FILE, id_in
from corral.services.recording import forget_environment, process_is_gone
from corral.services.teardown import Teardown, carry_out_locked, exit_status
from corral.services.view import look, note_ends
from corral.store import claims, records, statedir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.contracts import Backend
    from corral.model.environment import Environment
    from corral.model.report import Report
    from corral.services.context import Context


# The environment's own directory goes last, when nothing is left that could use it.
_FILES = frozenset({Kind.DIRECTORY})


class GivenUp(NamedTuple):
    """What `down` did. `files`: (path, removed | left, reason). `stays`: why it is still there."""

    report: Report
    files: tuple[tuple[str, str, str], ...] = ()
    stays: str = ""


def give_up(
    context: Context, backends: Sequence[Backend], *, keep_data: bool = False, force: bool = False
) -> GivenUp:
    """Give the context's environment up.

    Raises NotFoundError when there is none, ForeignError while another owner lives there (unless
    `force`), HeldError when another teardown holds the lock for too long.
    """
    note_ends(context)
    with (
        building.alone(context, what="down"),
        lifecycle.hold(context.state_dir, what="down"),
    ):
        environment, job = _job(context, keep_data=keep_data, force=force)
        live = [b for b in backends if b.kinds != _FILES]
        report = carry_out_locked(context, live, job)
        stays = _what_stays(context, environment, report)
        if stays:
            return GivenUp(report, (), stays)
        rest = [b for b in backends if b.kinds == _FILES]
        report = report.merged(carry_out_locked(context, rest, job))
        if exit_status(report):
            return GivenUp(report, (), "something remains")
        files = remove_outputs(context, environment)
        _forget(context, environment, keep_data=keep_data)
        if not keep_data:
            # A start that was refused may have made the directory anew in between.
            directory = statedir.environment_dir(context.state_dir, environment.id)
            trees.remove_tree(directory, environment.nonce)
    return GivenUp(report, tuple(files))


def check(context: Context, *, force: bool = False) -> Environment:
    """The environment that would be given up; the errors of `give_up`, and nothing is changed."""
    return _job(context, keep_data=True, force=force)[0]


def _job(context: Context, *, keep_data: bool, force: bool) -> tuple[Environment, Teardown]:
    environment = find(context)
    if environment is None:
        raise NotFoundError(f"{context.directory} has no environment", remedy="nothing to do")
    acting = rules.acting(context, environment)
    mine = acting.owner if acting is not None else None
    world = look(context).world
    others = world.environments[environment.id].living - {mine}
    if others and not force:
        states = [world.owners[other] for other in sorted(others)]
        places = {i: each.environment.place.path for i, each in world.environments.items()}
        who = "; ".join(f"{called(each.owner, places)}: {each.reason}" for each in states)
        raise ForeignError(
            f"another owner lives in the environment of {environment.place.path}: {who}",
            remedy="let it end (corral session list), or give --force",
            resource=environment.id,
        )
    request = Request(
        Trigger.DOWN, owner=mine, environment=environment.id, data=not keep_data, force=force
    )
    return environment, Teardown(request, "down")


def _what_stays(context: Context, environment: Environment, report: Report) -> str:
    """Why the environment cannot be forgotten yet, or ""."""
    if exit_status(report):
        return "something remains"
    for judgement in report.left:
        if judgement.environment == environment.id and judgement.code != "data":
            sighting = judgement.sighting
            return f"{sighting.kind.value} {sighting.id} was left: {judgement.reason}"
    with context.registry.read() as conn:
        known = records.of_environment(conn, environment.id)
    for record in known:
        if record.kind is Kind.PROCESS and not process_is_gone(record):
            return f"{record.name or 'a command'} is being started or recorded there"
    return ""


def _forget(context: Context, environment: Environment, *, keep_data: bool) -> None:
    """Give back the claims; forget the environment and its implicit owner, unless data stays.

    An environment whose data stays keeps its row and its id, so that the data is still known.
    """
    data = os.path.isdir(statedir.environment_dir(context.state_dir, environment.id))
    with context.registry.write() as conn:
        if keep_data and data:
            claims.release_environment(conn, environment.id)
            return
        forget_environment(conn, environment.id)
    witnesses.forget(context.state_dir, environment.id)
    place = environment.place
    if place.kind == "git" and id_in(place.admin) == environment.id:
        try:
            os.unlink(os.path.join(place.admin, ID_FILE))
        except FileNotFoundError:
            # The worktree was removed in the meantime, and its entry with it.
            return
