"""Programs and parts that corral works without: which are here, what their absence means."""

from __future__ import annotations

import os

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.services.context import Context

# Where the docker program looks for its plugins, besides the user's own directory.
_PLUGINS = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)


class Check(NamedTuple):
    """One thing that was looked at.

    `state`: "ok", "limited" (corral works, with what `consequence` says) or "broken". `remedy`:
    what to do, "" where nothing can or need be done.
    """

    name: str
    state: str
    detail: str
    consequence: str = ""
    remedy: str = ""


def checks(context: Context) -> tuple[Check, ...]:
    """Look for what some projects need."""
    return (_compose(context), _ipv6())


def _compose(context: Context) -> Check:
    path = context.environ.get("PATH", os.defpath)
    plugins = (os.path.join(os.path.expanduser("~"), ".docker/cli-plugins"), *_PLUGINS)
    for directory in (*path.split(os.pathsep), *plugins):
        program = os.path.join(directory, "docker-compose")
        if os.path.isfile(program) and os.access(program, os.X_OK):
            return Check("compose", "ok", program)
    return Check(
        "compose",
        "limited",
        "neither a docker-compose program nor the plugin of docker was found",
        "corral up writes the override and .env all the same; nobody can start the stack here",
        "install Docker Compose if this project has compose files",
    )


def _ipv6() -> Check:
    try:
        import socket

        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as own:
            own.bind(("::1", 0))
    except OSError as error:
        return Check(
            "IPv6",
            "limited",
            f"::1 cannot be used: {error.strerror}",
            "ports are probed and held on IPv4 only, which is all that servers can use here",
        )
    return Check("IPv6", "ok", "ports are probed and held on ::1 as well")
