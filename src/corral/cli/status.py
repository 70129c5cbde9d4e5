"""`corral status`: what is owned, kept, shared, orphaned or unknown."""

from __future__ import annotations

from corral.cli import encoding
from corral.cli.output import EXIT_NO_LOOK, EXIT_OK, Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns, heading, rows
from corral.services.status import Status, status
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.services.context import Context


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument(
        "--all", action="store_true", help="also what other live owners have, and in which worktree"
    )
    parser.add_argument("--explain", action="store_true", help="say how each verdict was reached")


def run(arguments: Namespace) -> Answer:
    """Look and answer."""
    context = context_of(arguments, anywhere=True)
    seen = status(context, backends(context), wide=arguments.all)
    problems = encoding.look_problems(seen.backends)
    return Answer(
        _data(context, seen),
        lambda: _text(context, seen, explain=arguments.explain, everywhere=arguments.all),
        problems=(*problems, *encoding.missing_problems(seen.view)),
        status=EXIT_NO_LOOK if problems else EXIT_OK,
    )


def _environment(context: Context, seen: Status) -> dict[str, Any] | None:
    if seen.environment is None:
        return None
    from corral.services.environment_view import describe

    with context.registry.read() as conn:
        return describe(conn, seen.environment, context.settings)


def _data(context: Context, seen: Status) -> dict[str, Any]:
    return {
        "owner": seen.acting.owner if seen.acting else None,
        "session": seen.acting.session if seen.acting else None,
        "environment": _environment(context, seen),
        "owned": encoding.resources(seen.owned),
        "kept": encoding.resources(seen.kept),
        "shared": encoding.resources(seen.shared),
        "orphans": encoding.resources(seen.orphans),
        "unknown": [
            *encoding.resources(seen.unknown),
            *(encoding.bad_record(b) for b in seen.bad),
        ],
        "backends": [encoding.backend(b) for b in seen.backends],
    }


def _text(context: Context, seen: Status, *, explain: bool, everywhere: bool) -> str:
    now = seen.view.now
    blocks = [_head(context, seen)]
    owned = [j for j in seen.owned if j.code != "grace"]
    crashed = [j for j in seen.owned if j.code == "grace"]
    known = seen.view.world.environments
    places = {i: e.environment.place.path for i, e in known.items()} if everywhere else None
    for title, group, why in (
        ("owned", owned, explain),
        ("crashed, kept while the owner may return", crashed, True),
        ("kept", seen.kept, True),
        ("shared runtime, never stopped", seen.shared, True),
        ("orphans (corral cleanup takes them down)", seen.orphans, True),
        ("unknown, left alone", seen.unknown, True),
    ):
        shown = group if explain else [j for j in group if j.code != "environment"]
        blocks.append(rows(title, shown, now, why=why, places=places))
        if explain:
            blocks += [_explained(j.sighting.identity, j.proof) for j in group]
    if seen.bad:
        lines = columns([(b.where, b.id, b.reason) for b in seen.bad])
        blocks.append(f"{heading('records that cannot be read')}\n{lines}")
    if explain:
        lines = columns([(b.name, b.state.value, b.detail) for b in seen.backends])
        blocks.append(f"{heading('backends')}\n{lines}")
    if len([b for b in blocks if b]) == 1:
        blocks.append("nothing is running here\n")
    return "".join(b for b in blocks if b)


def _explained(identity: tuple[tuple[str, str | int], ...], proof: Any) -> str:
    pairs = " ".join(f"{k}={v}" for k, v in identity)
    words = proof.value if proof is not None else "no proof"
    return f"    {words}; {pairs}\n"


def _head(context: Context, seen: Status) -> str:
    data = _environment(context, seen)
    lines = []
    if data is None:
        lines.append(("environment", f"none yet in {context.directory} (corral up makes one)"))
    else:
        lines.append(("environment", f"{data['id']}  {data['path']}"))
        ports = " ".join(f"{name}={port}" for name, port in data["ports"].items())
        if ports:
            lines.append(("ports", ports))
        if data["address"]:
            lines.append(("address", data["address"]))
        if data["database"]:
            from corral.decide.database_urls import without_password

            shown = data["database"]["url"] or data["database"]["name"]
            lines.append(("database", without_password(shown)))
    if seen.acting is not None:
        words = "implicit (a person here)" if seen.acting.implicit else seen.acting.session
        lines.append(("owner", f"{seen.acting.owner}  {words}"))
    return columns(lines)
