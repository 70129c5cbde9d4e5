"""A registry as a busy machine has it: 150 rows about ten environments and their workers."""

from __future__ import annotations

import os
import time

from corral.kernel.clock import boot_id
from corral.kernel.identity import encode_identity, own_identity
from corral.model.environment import Claim, ClaimKind, Environment
from corral.model.process import ProcessIdentity
from corral.model.record import Record, RecordState
from corral.model.resource import Kind
from corral.services.places import plain_place
from corral.store import claims, environments, owners, records
from corral.store.registry import Registry

ENVIRONMENTS = 10
_PORTS = 5
_RECORDS = 6  # with its environment, owner, alias and epoch: 15 rows for each environment
_LOWEST_PORT = 22000


def seed(state_dir: str, trees: str) -> None:
    """Fill the registry in `state_dir` with environments of directories made below `trees`.

    Every owner has a live anchor (this process); its recorded processes are gone.
    """
    now = time.time()
    registry = Registry.open(state_dir)
    anchor = own_identity()
    with registry.write() as conn:
        for number in range(ENVIRONMENTS):
            path = os.path.join(trees, f"tree-{number}")
            os.makedirs(path)
            name = f"{number:012x}"
            environments.insert(conn, Environment(name, plain_place(path), "0" * 16, now))
            owners.mint(conn, name, implicit_of=None, parent=None, now=now)
            owners.alias(conn, f"session-{number}", name, "claude", now)
            owners.open_epoch(
                conn,
                owner=name,
                environment=name,
                agent="claude",
                boot_id=anchor.boot_id,
                anchor=anchor,
                now=now,
            )
            for index in range(_PORTS):
                claims.take(conn, _port(name, number * _PORTS + index, now))
            for index in range(_RECORDS):
                records.insert(conn, record(name, f"{name}-{index}", now))
    registry.close()


def _port(environment: str, offset: int, now: float) -> Claim:
    value = str(_LOWEST_PORT + offset)
    return Claim(ClaimKind.PORT, "tcp", value, f"p{offset}", environment, None, "bench", now)


def record(owner: str, identifier: str, now: float) -> Record:
    """The record of a process of an owner, in its environment, that is gone."""
    gone = ProcessIdentity(os.getpid(), 1, boot_id(), own_identity().pid_namespace)
    return Record(
        id=identifier,
        kind=Kind.PROCESS,
        backend="process",
        role="service",
        name=identifier,
        owner=owner,
        session=None,
        environment=owner,
        state=RecordState.LIVE,
        identity=encode_identity(gone),
        creator=None,
        created_at=now,
    )
