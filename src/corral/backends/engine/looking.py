"""One look into one engine: everything that ownership needs, asked for at the same time."""

from __future__ import annotations

import os

from corral.backends.engine import views
from corral.backends.engine.labels import carries, project_of
from corral.backends.engine.ownership import Holdings
from corral.backends.engine.states import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corral.backends.engine.client import About, Engine
    from corral.backends.engine.proofs import Known
    from corral.backends.engine.views import Container, Volume

# Docker 23: before, writing into a volume changed the time of its creation.
_STEADY_VOLUMES = (1, 42)
_PATHS = ("/containers/json?all=1", "/networks", "/volumes")
_OK, _NOT_FOUND = 200, 404


def listing(engine: Engine, deadline: float) -> Holdings:
    """Everything but the labels of images. Raises EngineError when any of it cannot be had."""
    about = engine.about(deadline)
    answers = engine.read(_PATHS, deadline)
    try:
        containers = views.containers(answers[0])
        networks = views.networks(answers[1])
        volumes = views.volumes(answers[2])
        daemon = views.identity_in(networks) or _told(engine, deadline)
    except EngineError as error:
        name = engine.endpoint.name
        raise EngineError(f"{engine.endpoint.url}: {error.message}", backend=name) from error
    births = _births(volumes, about, local=bool(engine.endpoint.path))
    return Holdings(engine.endpoint.name, daemon, containers, networks, volumes, {}, births)


def daemon(engine: Engine, deadline: float) -> str:
    """What names the engine for good."""
    networks = views.networks(engine.read(["/networks"], deadline)[0])
    return views.identity_in(networks) or _told(engine, deadline)


def _told(engine: Engine, deadline: float) -> str:
    """Asked for only where the networks do not say it: this answer takes an engine 7 to 50 ms."""
    return views.identity_told(engine.read(["/info"], deadline)[0])


def containers(engine: Engine, deadline: float) -> tuple[Container, ...]:
    """The containers alone."""
    return views.containers(engine.read(_PATHS[:1], deadline)[0])


def holdings(engine: Engine, known: Known, deadline: float) -> Holdings:
    """Everything, with the labels of the images of all that may be corral's."""
    held = listing(engine, deadline)
    images = {
        c.image
        for c in held.containers
        if c.image
        and (carries(c.labels, known.namespaces) or project_of(c.labels) in known.projects)
    }
    return held._replace(images=image_labels(engine, sorted(images), deadline))


def image_labels(
    engine: Engine, images: list[str], deadline: float
) -> Mapping[str, Mapping[str, str] | None]:
    """The labels of each image; None for an image that is gone."""
    import json

    answers = engine.calls([("GET", f"/images/{image}/json", None) for image in images], deadline)
    found: dict[str, Mapping[str, str] | None] = {}
    for image, answer in zip(images, answers, strict=True):
        if answer.status == _NOT_FOUND:
            found[image] = None
            continue
        if answer.status != _OK:
            raise EngineError(
                f"{engine.endpoint.url} does not say what the image {image} carries: "
                f"{engine.words(answer)}",
                backend=engine.endpoint.name,
            )
        try:
            found[image] = views.image_labels(json.loads(answer.body))
        except ValueError as error:
            raise EngineError(
                f"{engine.endpoint.url} answered for the image {image} with no JSON",
                backend=engine.endpoint.name,
            ) from error
    return found


def _births(volumes: Iterable[Volume], about: About, *, local: bool) -> dict[str, str]:
    """A steady creation time for volumes of engines whose own one moves, where it can be had.

    The directory that holds a volume's data directory changes only when it is made.
    """
    if about.podman or about.api >= _STEADY_VOLUMES:
        return {}
    return {v.name: _change(os.path.dirname(v.mountpoint)) if local else "" for v in volumes}


def _change(directory: str) -> str:
    try:
        return str(os.stat(directory).st_ctime_ns)
    except OSError:  # another machine's path, or one that only root may look at
        return ""
