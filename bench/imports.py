"""What importing a module adds to a bare interpreter: the figures behind the rules on imports."""

from __future__ import annotations

import statistics
import sys

from harness import BARE, private_environ, times

MODULES = (
    "datetime",
    "contextlib",
    "enum",
    "sqlite3",
    "json",
    "socket",
    "argparse",
    "shutil",
    "typing",
    "pathlib",
    "tempfile",
    "subprocess",
    "logging",
    "inspect",
    "tomllib",
    "dataclasses",
    "http.client",
    "rich.table",
)
_FIELDS = "\n".join(f"    {name}: int" for name in "abcde")
CLASSES = {
    "25 frozen slotted dataclasses": "from dataclasses import dataclass\n"
    + "".join(f"@dataclass(frozen=True, slots=True)\nclass C{n}:\n{_FIELDS}\n" for n in range(25)),
    "25 NamedTuples": "from typing import NamedTuple\n"
    + "".join(f"class C{n}(NamedTuple):\n{_FIELDS}\n" for n in range(25)),
}


def main() -> int:
    """Print a line for each module, and for 25 classes of each kind."""
    programs = {name: f"import {name}" for name in MODULES} | CLASSES
    subjects = [BARE, *((sys.executable, "-c", text) for text in programs.values())]
    with private_environ() as environ:
        bare, *taken = (statistics.median(t) for t in times(subjects, environ, 21))
    print(f"{'bare interpreter':<30} {bare * 1000:5.1f} ms")
    for name, seconds in zip(programs, taken, strict=True):
        print(f"{name:<30} +{(seconds - bare) * 1000:4.1f} ms  {seconds / bare:4.1f} x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
