"""`corral keep` and `corral unkeep`: never take a resource down, or undo that."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.services.adopting import find_resource, keep
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    parser.add_argument("resource", metavar="RESOURCE", help="KIND/ID, an id or a name")
    parser.set_defaults(kept=command == "keep")


def run(arguments: Namespace) -> Answer:
    """Keep or unkeep, and answer."""
    context = context_of(arguments, anywhere=True)
    found = find_resource(context, backends(context), arguments.resource)
    keep(context, found, kept=arguments.kept)
    word = "kept" if arguments.kept else "no longer kept"
    data = {
        "kind": found.kind.value,
        "id": found.id,
        "name": found.name,
        "kept": arguments.kept,
    }
    return Answer(data, lambda: f"{found.kind.value} {found.id} is {word}\n")
