"""The errors of corral: each names the thing, the reason and the remedy, as attributes.

`exit_status` is what the command line returns for an error that reaches its edge:
1 something remains, 2 usage or configuration, 3 could not look, 4 refused.
"""

from __future__ import annotations


class CorralError(Exception):
    """Base of every error corral raises on purpose.

    `code` is a stable word for programs, `message` names the thing and the reason,
    `resource` is the id of the thing (or None), `remedy` says what to do (or "").
    """

    code = "error"
    exit_status = 2

    def __init__(self, message: str, *, remedy: str = "", resource: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.resource = resource

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class UsageError(CorralError):
    """The command line or a call was used in a way that has no meaning."""

    code = "usage"


class ConfigurationError(CorralError):
    """A configuration file or variable holds an unknown key or a wrong value."""

    code = "configuration"


class InvalidValueError(CorralError, ValueError):
    """A value (name, port, mode, text) that cannot be accepted; also a ValueError."""

    code = "invalid-value"


class NotFoundError(CorralError):
    """What was named does not exist (a service, a resource, an environment)."""

    code = "not-found"


class StateDirectoryError(CorralError):
    """The state directory cannot be used: foreign, a symlink, on a network file system, full."""

    code = "state-directory"


class RegistryError(CorralError):
    """The registry cannot be read or written."""

    code = "registry"


class RegistryTooNewError(RegistryError):
    """The registry was written by a newer corral that this one must not touch."""

    code = "registry-too-new"


class EnumerationError(CorralError):
    """A look failed. It is not an empty look: nothing of that backend is judged or removed.

    `backend` names where the look failed.
    """

    code = "enumeration-failed"
    exit_status = 3

    def __init__(
        self, message: str, *, backend: str = "", remedy: str = "", resource: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy, resource=resource)
        self.backend = backend


class RefusedError(CorralError):
    """What was asked for is held, foreign or untrusted, so it was not done."""

    code = "refused"
    exit_status = 4


class HeldError(RefusedError):
    """A lock or claim is held by somebody else, who is named."""

    code = "held"


class ForeignError(RefusedError):
    """The thing belongs to another live owner."""

    code = "foreign"


class UntrustedError(RefusedError):
    """A repository's file brings commands that the user has not trusted yet."""

    code = "untrusted"


class RunError(CorralError):
    """A command could not be started, died during its start, or never became ready."""

    code = "run-failed"
    exit_status = 1
