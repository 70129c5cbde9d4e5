"""`corral port claim|release|list`: single ports, for the environment or for a process."""

from __future__ import annotations

from corral.cli.output import Answer
from corral.cli.port_arguments import port_wish
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.errors import UsageError
from corral.services import port_claims
from corral.services.environments import places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from corral.model.environment import Claim

ACTIONS = ("claim", "release", "list")

_HEADS = ("NAME", "PORT", "PROTOCOL", "CLAIMED FOR", "WORKTREE")


def configure(parser: ArgumentParser, command: str) -> None:
    """Add the arguments."""
    del command
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument(
        "ports",
        nargs="*",
        metavar="NAME[=PREFERRED]",
        help="claim: the ports' names; release: names or numbers",
    )
    parser.add_argument(
        "--count", type=int, metavar="N", help="claim: N ports in a row, named NAME, NAME-2, ..."
    )
    parser.add_argument(
        "--holder", type=int, metavar="PID", help="the process that holds the claim as it lives"
    )
    parser.add_argument("--all", action="store_true", help="list: everybody's")


def run(arguments: Namespace) -> Answer:
    """Claim, release or list."""
    _check(arguments)
    return {"claim": _claim, "release": _release, "list": _list}[arguments.action](arguments)


def _check(arguments: Namespace) -> None:
    action = arguments.action
    if arguments.count is not None and (action != "claim" or arguments.count < 1):
        raise UsageError(
            f"--count {arguments.count} has no meaning here",
            remedy="corral port claim NAME --count N, with N from 1 up",
        )
    if arguments.count is not None and len(arguments.ports) != 1:
        raise UsageError(
            "--count needs exactly one name", remedy="corral port claim NAME --count N"
        )
    if arguments.all and action != "list":
        raise UsageError("--all has no meaning here", remedy="corral port list --all")
    if action == "list" and arguments.ports:
        raise UsageError("corral port list takes no names", remedy="corral port list [--all]")
    if action == "claim" and not arguments.ports:
        raise UsageError("no port is named", remedy="corral port claim NAME[=PREFERRED]")
    if action == "release" and not arguments.ports and arguments.holder is None:
        raise UsageError("no port is named", remedy="corral port release NAME")


def _claim(arguments: Namespace) -> Answer:
    wishes = [port_wish(text) for text in arguments.ports]
    if arguments.count is not None and wishes[0].preferred is not None:
        raise UsageError("--count takes its ports from the pool", remedy="name no preferred port")
    names = [wish.name for wish in wishes]
    if len(set(names)) != len(names):
        raise UsageError("a port is named twice", remedy="name each port once")
    context = context_of(arguments)
    done = port_claims.claim(context, wishes, count=arguments.count, holder=arguments.holder)
    found = {
        "ports": {each.name: each.number for each in done.ports},
        "claimed": [each.name for each in done.ports if each.new],
        "environment": done.environment,
        "holder": done.holder,
    }
    return Answer(
        found,
        lambda: "".join(f"{each.number}\n" for each in done.ports),
        words=tuple(each.words for each in done.ports if each.words),
    )


def _release(arguments: Namespace) -> Answer:
    given = port_claims.release(context_of(arguments), arguments.ports, holder=arguments.holder)
    words = tuple(f"released {each.name} {each.value}" for each in given)
    return Answer({"released": [_row(each) for each in given]}, lambda: "", words=words)


def _list(arguments: Namespace) -> Answer:
    context = context_of(arguments)
    claimed = port_claims.listed(context, everywhere=arguments.all, holder=arguments.holder)
    found = [_row(each) for each in claimed]

    def text() -> str:
        paths = places(context)
        cells = [
            (
                row["name"],
                str(row["port"]),
                row["protocol"],
                row["environment"] or f"process {row['holder']}",
                paths.get(row["environment"] or "", "-"),
            )
            for row in found
        ]
        return columns(cells, _HEADS) or "no ports\n"

    return Answer({"ports": found}, text)


def _row(claim: Claim) -> dict[str, Any]:
    protocol, _, address = claim.scope.partition("@")
    return {
        "name": claim.name,
        "port": int(claim.value),
        "protocol": protocol,
        "address": address or None,
        "environment": claim.environment,
        "holder": claim.holder.pid if claim.holder is not None else None,
        "worker": claim.worker,
        "created_at": claim.created_at,
    }
