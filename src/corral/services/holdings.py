"""What an environment has: read from its claims, the only truth about ports and names."""

from __future__ import annotations

from corral.model.environment import ClaimKind
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from corral.model.environment import Claim


_CLUSTER = "cluster:"


class Port(NamedTuple):
    """A claimed port by the name that its claimant gave it."""

    name: str
    number: int
    protocol: str


class Database(NamedTuple):
    """An environment's own database. `name`: of the schema, database or container, or the path."""

    isolation: str
    name: str
    url: str


class Holdings(NamedTuple):
    """All that one environment has claimed; `names` maps a place ("compose") to the name there.

    `kubeconfig`: the file of its own for its clusters, "" while it has claimed none.
    """

    ports: tuple[Port, ...] = ()
    address: str | None = None
    database: Database | None = None
    names: tuple[tuple[str, str], ...] = ()
    kubeconfig: str = ""

    def port(self, name: str) -> Port | None:
        """The port of that name, or None."""
        return next((port for port in self.ports if port.name == name), None)

    def name(self, scope: str) -> str | None:
        """The name that was claimed in a place, or None."""
        return dict(self.names).get(scope)


def holdings_of(claims: Iterable[Claim]) -> Holdings:
    """The holdings that an environment's claims, oldest first, amount to."""
    found = Holdings()
    for claim in claims:
        if claim.kind is ClaimKind.PORT:
            port = Port(claim.name, int(claim.value), claim.scope.partition("@")[0])
            found = found._replace(ports=(*found.ports, port))
        elif claim.kind is ClaimKind.ADDRESS:
            found = found._replace(address=claim.value)
        elif claim.kind is ClaimKind.DATABASE:
            found = found._replace(database=Database(claim.scope, claim.value, claim.detail))
        else:
            kubeconfig = found.kubeconfig or _kubeconfig(claim)
            names = (*found.names, (claim.scope, claim.value))
            found = found._replace(names=names, kubeconfig=kubeconfig)
    return found


def _kubeconfig(claim: Claim) -> str:
    if not claim.scope.startswith(_CLUSTER):
        return ""
    import json

    try:
        path = json.loads(claim.detail)["kubeconfig"]
    except (ValueError, KeyError, TypeError):  # of a later version
        return ""
    return path if isinstance(path, str) else ""
