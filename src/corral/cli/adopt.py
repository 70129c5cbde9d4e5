"""`corral adopt KIND ID`: make a running resource this owner's."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.surroundings import context_of
from corral.services.adopting import adopt
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("kind", metavar="KIND", help="process, container, ...")
    parser.add_argument("id", metavar="ID", help="its pid, id or name")
    parser.add_argument("--name", metavar="N", default="", help="what to call it")


def run(arguments: Namespace) -> Answer:
    """Adopt and answer."""
    context = context_of(arguments)
    record = adopt(context, backends(context), arguments.kind, arguments.id, name=arguments.name)
    data = {
        "record": record.id,
        "kind": record.kind.value,
        "id": arguments.id,
        "name": record.name,
        "owner": record.owner,
        "session": record.session,
        "environment": record.environment,
        "identity": dict(record.identity),
    }
    return Answer(data, lambda: f"adopted {record.kind.value} {arguments.id}\n")
