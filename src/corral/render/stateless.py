"""Text for a worktree's environment from a spec alone: no registry, no process, no file."""

from __future__ import annotations

from corral.render import compose
from corral.render.formats import render_text
from corral.render.header import comment
from corral.render.spec import DbIsolation, OutputFormat, choose, variables_of
from corral.render.variables import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from corral.render.spec import EnvIsolationSpec
    from corral.render.variables import Variables

# what the namespace's own module is called in the comment at the top
_GENERATORS = {"harness": "harness_skills.env_isolation"}


def _title(spec: EnvIsolationSpec) -> str:
    return f"{spec.namespace} env-isolation — worktree: {spec.worktree_id}"


def _generator(spec: EnvIsolationSpec) -> str:
    return _GENERATORS.get(spec.namespace, "corral")


def generate_env_config(
    spec: EnvIsolationSpec, output_format: OutputFormat | str, *, header: bool = True
) -> str:
    """The spec's variables in a format, given as an `OutputFormat` or by its value.

    `header=False` leaves out the comment at the top: `env $(cat FILE)` takes no comments.
    Raises InvalidValueError for an unknown format and for a variable that the format cannot carry.
    """
    chosen = choose(OutputFormat, output_format, "output_format")
    if chosen is OutputFormat.DOCKER_COMPOSE:
        return generate_docker_compose_override(spec, header=header)
    return render_text(
        chosen.value,
        dict(variables_of(spec)),
        title=_title(spec),
        header=header,
        generator=_generator(spec),
    )


def generate_dotenv(spec: EnvIsolationSpec, *, header: bool = True) -> str:
    """A dotenv file, as `generate_env_config` with `OutputFormat.DOTENV`.

    Which programs read it back unchanged: docs/reference/formats/dotenv.md. Raises
    InvalidValueError for a variable that they do not all read alike.
    """
    return generate_env_config(spec, OutputFormat.DOTENV, header=header)


def generate_shell_exports(spec: EnvIsolationSpec, *, header: bool = True) -> str:
    """`export` lines to source in sh, dash, bash or zsh, which take any value but a NUL.

    As `generate_env_config` with `OutputFormat.SHELL`, and with the same errors.
    """
    return generate_env_config(spec, OutputFormat.SHELL, header=header)


def generate_docker_compose_override(
    spec: EnvIsolationSpec,
    *,
    base: str | PathLike[str] | None = None,
    service: str = "",
    header: bool = True,
) -> str:
    """A Compose file for `docker compose -f docker-compose.yml -f FILE up`.

    Alone it holds a service named after the worktree, built from the project directory, that
    publishes the port on 127.0.0.1. With `service`, it changes that service of the user's own file
    instead. With `base` (a path or YAML text) it changes all services of that file, so that none
    keeps a fixed port or name; `service`, or the only one that publishes a port, gets the port.
    In CONTAINER mode a PostgreSQL service stands beside it and `DATABASE_URL` leads there.

    Raises InvalidValueError for a service that is not in the base, or where none can be told, and
    ConfigurationError for a base that is no Compose file.
    """
    variables = checked(variables_of(spec))
    companion = None
    if spec.db_isolation is DbIsolation.CONTAINER:
        companion = compose.Companion(spec.companion, f"{spec.companion}_data")
    if base is None:
        if companion is not None:
            variables = (*variables, ("DATABASE_URL", companion.url))
        body = compose.standalone(
            spec.container, spec.port, variables, service=service, companion=companion
        )
    else:
        body = _based(spec, base, service, variables, companion)
    return comment(_title(spec), _generator(spec)) + body if header else body


def _based(
    spec: EnvIsolationSpec,
    base: str | PathLike[str],
    service: str,
    variables: Variables,
    companion: compose.Companion | None,
) -> str:
    from corral.render import compose_based  # brings the YAML reader, which only a base needs

    known = compose_based.read(base)
    application = compose_based.application_of(known, service)
    return compose_based.override(
        known,
        application,
        project=spec.container,
        namespace=spec.namespace,
        port=spec.port,
        variables=variables,
        companion=companion,
    )
