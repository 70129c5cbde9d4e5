"""Containers, networks and volumes: one backend for each container engine of this machine.

Nothing of an engine's client is imported before there is a socket or a context to ask.
"""

from __future__ import annotations

import sys
import time

from corral.backends.engine.endpoints import discover, is_socket
from corral.contracts import Engine
from corral.errors import EnumerationError
from corral.model.environment import ClaimKind
from corral.model.resource import BackendState, Kind, Observation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corral.backends.engine.client import Engine as Client
    from corral.backends.engine.endpoints import Endpoint
    from corral.backends.engine.ownership import Holdings
    from corral.backends.engine.proofs import Known
    from corral.contracts import RemovalContext, View
    from corral.decide.engine_calls import EngineCall
    from corral.model.record import Record
    from corral.model.report import Outcome
    from corral.model.resource import Judgement, Sighting

KINDS = frozenset({Kind.CONTAINER, Kind.NETWORK, Kind.VOLUME})
LOOK_SECONDS = 4.5  # a little less than every look is given, so that the reason is the engine's


def container_backends(
    environ: Mapping[str, str], home: str, places: Iterable[tuple[str, str]] = ()
) -> tuple[ContainerBackend, ...]:
    """A backend for each engine that the tools would use, that has a socket, or is recorded.

    `places` are pairs of a backend's name and its place, from records.
    """
    return tuple(ContainerBackend(e, environ) for e in discover(environ, home, places))


class ContainerEngines:
    """The container engines that the variables and records of one call lead to."""

    def __init__(
        self, environ: Mapping[str, str], home: str, places: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._environ = environ
        self._home = home
        self._places = tuple(places)

    def reached_by(self, call: EngineCall) -> Engine | None:
        """The engine that a command line leads to; None where corral cannot look into it."""
        if call.tool == "container":
            return Engine("apple", "", "apple") if sys.platform == "darwin" else None
        from corral.backends.engine.endpoints import endpoint_of

        endpoint = endpoint_of(call, self._environ, self._home)
        if endpoint is None:
            return None
        backend = ContainerBackend(endpoint, self._environ)
        return Engine(backend.name, backend.place, backend.daemon())

    def publishers(self, view: View, port: int) -> tuple[Sighting, ...]:
        """The containers that publish this port, of all engines that answer."""
        found: list[Sighting] = []
        for backend in container_backends(self._environ, self._home, self._places):
            try:
                found += backend.publishers(view, port)
            except EnumerationError:
                # Not proven to be ours: then it is treated as somebody else's.
                continue
        return tuple(found)


class ContainerBackend:
    """One engine. `place` leads to it again from a record, wherever the variables lead then."""

    kinds = KINDS

    def __init__(self, endpoint: Endpoint, environ: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.place = endpoint.place
        self._environ = environ
        # Without a socket nobody can keep anyone waiting: no thread is needed to look.
        self.local = bool(endpoint.path) and not is_socket(endpoint.path)

    def observe(self, view: View) -> Observation:
        """Everything in the engine that concerns corral, and the engine itself."""
        if self.local:
            return self._absent(view, f"no socket at {self.endpoint.path}")
        from corral.backends.engine.ownership import sightings
        from corral.backends.engine.recorded import account_for
        from corral.backends.engine.states import (
            EngineAbsentError,
            EngineDeniedError,
            EngineDownError,
        )

        try:
            with self._engine() as engine:
                held, known = _look(engine, view)
                itself = self._itself(engine, held.daemon)
        except EngineDownError as error:
            if _claims_a_project(view):
                # It ran once, and `docker compose` needs no record to have started the stack.
                what = f"{error.message}, and a compose project is claimed that may be there"
                raise EnumerationError(what, backend=self.name) from error
            return self._absent(view, error.message)
        except (EngineAbsentError, EngineDeniedError) as error:
            return self._absent(view, error.message)
        found = sightings(held, known)
        gone, shown = account_for(view, self.place, held, found)
        every = (*found, *shown, itself)
        return Observation(self.name, BackendState.OK, itself.name, every, tuple(gone))

    def look_up(self, view: View, kind: Kind, identifier: str) -> Sighting | None:
        """The container, network or volume of that id or name, marked or not."""
        if self.local:
            return None
        from corral.backends.engine.ownership import exactly

        with self._engine() as engine:
            held, known = _look(engine, view)
        return exactly(held, known, kind, identifier)

    def daemon(self) -> str:
        """The identity of the engine, "" when it cannot be asked."""
        if self.local:
            return ""
        from corral.backends.engine import looking

        try:
            with self._engine() as engine:
                return looking.daemon(engine, time.monotonic() + LOOK_SECONDS)
        except EnumerationError:
            # Whoever is about to use it will be told by the tool itself.
            return ""

    def publishers(self, view: View, port: int) -> tuple[Sighting, ...]:
        """The containers that publish this port of the machine, marked or not."""
        if self.local:
            return ()
        from corral.backends.engine.ownership import exactly
        from corral.backends.engine.publishing import publishers

        deadline = time.monotonic() + LOOK_SECONDS
        with self._engine() as engine:
            held, known = _look(engine, view)
            containers = publishers(engine, held.containers, port, deadline)
        found = (exactly(held, known, Kind.CONTAINER, each.id) for each in containers)
        return tuple(sighting for sighting in found if sighting is not None)

    def remove(self, targets: Sequence[Judgement], context: RemovalContext) -> tuple[Outcome, ...]:
        """Remove the targets by their full ids, gently what holds data."""
        from corral.backends.engine.removing import remove

        with self._engine() as engine:
            return remove(engine, targets, context)

    def _engine(self) -> Client:
        from corral.backends.engine.client import Engine as Client

        return Client(self.endpoint, self._environ)

    def _absent(self, view: View, reason: str) -> Observation:
        """ABSENT, unless something is recorded to be there: then it is a failed look."""
        records = [record for record in view.records if record.kind in KINDS]
        if records and self._leads_here(records):
            raise EnumerationError(f"{reason}, and something recorded is there", backend=self.name)
        return Observation(self.name, BackendState.ABSENT, reason)

    def _leads_here(self, records: Iterable[Record]) -> bool:
        from corral.backends.engine.recorded import place_of

        return any(place_of(record) == self.place for record in records)

    def _itself(self, engine: Client, daemon: str) -> Sighting:
        from corral.model.resource import Sighting

        about = engine.about(0.0)  # known since the look
        return Sighting(
            kind=Kind.ENGINE,
            id=self.endpoint.url,
            name=f"{about.product} {about.version} at {self.endpoint.url}",
            backend=self.name,
            state="reachable",
            created_at=None,
            identity=(("daemon", daemon),),
            shared=True,
        )


def _claims_a_project(view: View) -> bool:
    return any(claim.kind is ClaimKind.NAME and claim.scope == "compose" for claim in view.claims)


def _look(engine: Client, view: View) -> tuple[Holdings, Known]:
    """What the engine holds, and what the registry knows that bears on it."""
    from corral.backends.engine import looking, registry_view

    before = registry_view.known(view)
    held = looking.holdings(engine, before, time.monotonic() + LOOK_SECONDS)
    return held, registry_view.with_places(before, held.containers)
