"""Where an environment's compose project may be started: what its claim remembers.

The detail of the claim is a JSON object whose `directories` are real paths: that of the worktree,
that of the first compose file, and where these were before the worktree was moved.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def write_directories(directories: Iterable[str]) -> str:
    """The detail of a claim that remembers these directories."""
    import json

    return json.dumps({"directories": sorted(directories)})


def read_directories(detail: str) -> frozenset[str]:
    """The directories that a claim's detail remembers; none for any other text."""
    if not detail.startswith("{"):
        return frozenset()
    import json

    try:
        listed = json.loads(detail).get("directories")
    except ValueError:  # words for people, or of a later version
        return frozenset()
    if not isinstance(listed, list):
        return frozenset()
    return frozenset(each for each in listed if isinstance(each, str))


def still_of(
    environment: str, directories: Iterable[str], paths: Mapping[str, str]
) -> frozenset[str]:
    """Those that lie in no other environment now; `paths` are the environments' own by id.

    Where a worktree was moved away, another may stand by now.
    """

    def owner(directory: str) -> str:
        around = [
            (len(path), identifier)
            for identifier, path in paths.items()
            if f"{directory}/".startswith(f"{path.rstrip('/')}/")
        ]
        return max(around)[1] if around else environment

    return frozenset(each for each in directories if owner(each) == environment)
