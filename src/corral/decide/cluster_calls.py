"""Command lines of kind, k3d and minikube that bring a cluster into being: which, and where.

Only what decides the cluster's name is read. An option that is not known could take the next word
for its value, so the call is then unclear, and nothing is changed or recorded.
"""

from __future__ import annotations

from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KIND_VALUES = frozenset(
    {"-v", "--verbosity", "-n", "--name", "--config", "--image", "--wait", "--kubeconfig"}
    | {"--loglevel"}
)
_KIND_SWITCHES = frozenset({"-q", "--quiet", "--retain", "-h", "--help"})
_K3D_VALUES = frozenset(
    {"-a", "--agents", "--agents-memory", "--api-port", "-c", "--config", "-e", "--env", "--gpus"}
    | {"--host-alias", "-i", "--image", "--k3s-arg", "--k3s-node-label", "-l", "--label"}
    | {"--lb-config-override", "--network", "-p", "--port", "--registry-config"}
    | {"--registry-create", "--registry-use", "--runtime-label", "--runtime-ulimit"}
    | {"-s", "--servers", "--servers-memory", "--subnet", "--timeout", "--token"}
    | {"-v", "--volume"}
)
_K3D_SWITCHES = frozenset(
    {"--enforce-registry-port-match", "--host-pid-mode", "--kubeconfig-switch-context"}
    | {"--kubeconfig-update-default", "--no-image-volume", "--no-lb", "--no-rollback"}
    | {"--timestamps", "--trace", "--verbose", "--version", "--wait", "-h", "--help"}
)
# minikube start has more than a hundred options; before the subcommand these can stand.
_MINIKUBE_VALUES = frozenset(
    {"-b", "--bootstrapper", "--log_dir", "--log_file", "--log_file_max_size", "-p", "--profile"}
    | {"--stderrthreshold", "--user", "-v", "--v", "--vmodule", "--log_backtrace_at"}
)
_MINIKUBE_SWITCHES = frozenset(
    {"--add_dir_header", "--alsologtostderr", "--logtostderr", "--one_output", "--rootless"}
    | {"--skip_headers", "--skip_log_headers", "--skip-audit", "-h", "--help"}
)


class ClusterCall(NamedTuple):
    """What a command line does. `creates`: it brings a cluster into being, or starts one again.

    `name`: the cluster that it names, "" for none. `at`: where words of the subcommand go.
    `kubeconfig`: the file that it names. `unclear`: the option that is not understood.
    """

    tool: str
    creates: bool = False
    name: str = ""
    at: int = 0
    kubeconfig: str = ""
    unclear: str = ""


class _Words(NamedTuple):
    """Words apart: options by name, the others with their places."""

    options: Mapping[str, str]
    others: tuple[tuple[int, str], ...]
    unclear: str = ""


def read_cluster_call(argv: Sequence[str]) -> ClusterCall | None:
    """What the command line does; None for any other program."""
    program = argv[0].rpartition("/")[2] if argv else ""
    readers = {"kind": _kind, "k3d": _k3d, "minikube": _minikube}
    return readers[program](argv) if program in readers else None


def with_cluster(
    argv: Sequence[str], call: ClusterCall, name: str, labels: Mapping[str, str]
) -> tuple[str, ...]:
    """The command line of a k3d call with a name and labels; others are told by variables."""
    if call.tool != "k3d":
        return tuple(argv)
    added = [word for k, v in labels.items() for word in ("--runtime-label", f"{k}={v}@all")]
    named = () if call.name else (name,)
    return (*argv[: call.at], *named, *added, *argv[call.at :])


def _kind(argv: Sequence[str]) -> ClusterCall:
    words = _apart(argv, _KIND_VALUES, _KIND_SWITCHES)
    call = ClusterCall("kind")
    if words.unclear:
        return call._replace(unclear=words.unclear)
    if _verbs(words)[:2] != ["create", "cluster"] or _asks_help(words):
        return call
    name = words.options.get("--name", words.options.get("-n", ""))
    kubeconfig = words.options.get("--kubeconfig", "")
    return call._replace(creates=True, name=name, at=words.others[1][0] + 1, kubeconfig=kubeconfig)


def _k3d(argv: Sequence[str]) -> ClusterCall:
    words = _apart(argv, _K3D_VALUES, _K3D_SWITCHES)
    call = ClusterCall("k3d")
    if words.unclear:
        return call._replace(unclear=words.unclear)
    if _verbs(words)[:2] != ["cluster", "create"] or _asks_help(words):
        return call
    name = words.others[2][1] if len(words.others) > 2 else ""  # noqa: PLR2004 (behind the verbs)
    return call._replace(creates=True, name=name, at=words.others[1][0] + 1)


def _minikube(argv: Sequence[str]) -> ClusterCall:
    head = _apart(argv, _MINIKUBE_VALUES, _MINIKUBE_SWITCHES, only_first=True)
    call = ClusterCall("minikube")
    if head.unclear:
        return call._replace(unclear=head.unclear)
    if _verbs(head) != ["start"]:
        return call
    at = head.others[0][0] + 1
    if {"-h", "--help"} & {*argv[at:], *head.options}:
        return call
    found = {**head.options, **_profiles(argv[at:])}
    name = found.get("--profile", found.get("-p", ""))
    return call._replace(creates=True, name=name, at=at)


def _profiles(words: Sequence[str]) -> dict[str, str]:
    """The profile that is named behind `minikube start`, whatever else stands there."""
    found = {}
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in {"-p", "--profile"}:
            found["--profile"] = following
        elif word.startswith("--profile="):
            found["--profile"] = word.partition("=")[2]
        elif word.startswith("-p") and not word.startswith("--"):
            found["--profile"] = word[2:].removeprefix("=")
    return found


def _verbs(words: _Words) -> list[str]:
    return [word for _, word in words.others]


def _asks_help(words: _Words) -> bool:
    return bool({"-h", "--help"} & words.options.keys())


def _apart(
    argv: Sequence[str],
    valued: frozenset[str],
    switches: frozenset[str],
    *,
    only_first: bool = False,
) -> _Words:
    """Options and other words as the tools' library reads them: mixed, up to `--`.

    `only_first` stops behind the first word that is no option.
    """
    options: dict[str, str] = {}
    others: list[tuple[int, str]] = []
    at = 1
    while at < len(argv) and argv[at] != "--" and not (only_first and others):
        word = argv[at]
        at += 1
        if not word.startswith("-") or word == "-":
            others.append((at - 1, word))
            continue
        name, value, waits = _option(word, valued, switches)
        if name is None:
            return _Words(options, tuple(others), word.partition("=")[0])
        options[name] = argv[at] if waits and at < len(argv) else value
        at += waits
    return _Words(options, tuple(others))


def _option(
    word: str, valued: frozenset[str], switches: frozenset[str]
) -> tuple[str | None, str, bool]:
    """An option's name (None: not known), its value, and whether the next word is its value."""
    name, equals, value = word.partition("=")
    if not word.startswith("--") and name not in valued | switches:
        name, value, equals = word[:2], word[2:].removeprefix("="), "="
        if name not in valued:
            return None, "", False
    if name in switches:
        return name, value, False
    return (name if name in valued else None), value, not equals
