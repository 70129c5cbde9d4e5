"""`corral doctor`: what this machine offers, and what follows from what is missing."""

from __future__ import annotations

from corral.cli import encoding
from corral.cli.output import EXIT_OK, EXIT_USAGE, Answer
from corral.cli.surroundings import context_of
from corral.cli.table import columns
from corral.model.resource import BackendState
from corral.services.doctor import Diagnosis, diagnose
from corral.wiring import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from corral.model.resource import BackendReport


_HEADS = ("STATE", "WHAT", "FOUND")
_IF_USED = "nothing, unless your projects use it: then start or install it"
_NO_CONTAINERS = (
    "its containers, networks and volumes are not looked for",
    _IF_USED,
)
_NO_CLUSTERS = ("clusters of this tool are not looked for", _IF_USED)
_ABSENT = {
    "docker": _NO_CONTAINERS,
    "podman": _NO_CONTAINERS,
    "kind": _NO_CLUSTERS,
    "k3d": _NO_CLUSTERS,
    "minikube": _NO_CLUSTERS,
}


def configure(parser: ArgumentParser, command: str) -> None:
    """There is nothing to configure."""
    del parser, command


def run(arguments: Namespace) -> Answer:
    """Diagnose and answer; exit 2 when something that corral needs is broken."""
    context = context_of(arguments, anywhere=True)
    found = diagnose(context, backends)
    data = {
        "checks": [check._asdict() for check in found.checks],
        "backends": [encoding.backend(report) for report in found.backends],
    }
    broken = any(check.state == "broken" for check in found.checks)
    return Answer(data, lambda: _text(found), status=EXIT_USAGE if broken else EXIT_OK)


def _text(found: Diagnosis) -> str:
    cells = []
    for check in found.checks:
        cells.append((check.state, check.name, check.detail))
        cells += _advice(check.consequence, check.remedy)
    for report in found.backends:
        cells.append((report.state.value, f"backend {report.name}", report.detail))
        cells += _advice(*_of_backend(report))
    return columns(cells, _HEADS)


def _advice(consequence: str, remedy: str) -> list[tuple[str, str, str]]:
    """The lines below what is missing: what follows from it, and what to do."""
    told = (("so", consequence), ("do", remedy))
    return [("", "", f"{word}: {words}") for word, words in told if words]


def _of_backend(report: BackendReport) -> tuple[str, str]:
    """What follows from a backend that was not looked at, and what to do."""
    if report.state is BackendState.FAILED:
        return (
            "nothing of it is judged or removed, and commands that look there exit with 3",
            "see that it answers this user, then run corral doctor again",
        )
    if report.state is BackendState.OK:
        return "", ""
    return _ABSENT.get(report.name.partition(":")[0], ("", ""))
