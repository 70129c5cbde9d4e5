"""What one command costs from spawn to exit, in lives of a bare interpreter."""

from __future__ import annotations

import os

from harness import BARE, Check, against_bare, console, private_environ
from seeding import seed


def version(rounds: int) -> float:
    """`corral --version`."""
    with private_environ() as environ:
        return against_bare([console("corral"), "--version"], environ, rounds)


def library(rounds: int) -> float:
    """`import corral`: a program that needs one name must not pay for the others."""
    with private_environ() as environ:
        return against_bare([BARE[0], "-c", "import corral"], environ, rounds)


def status(rounds: int) -> float:
    """`corral status` with 150 registry rows and no engine."""
    with private_environ() as environ:
        environ["PATH"] = os.path.dirname(console("corral"))  # no engine's program is to be found
        trees = os.path.join(environ["HOME"], "trees")
        seed(environ["CORRAL_STATE_DIR"], trees)
        argv = [console("corral"), "status", "--env", os.path.join(trees, "tree-0")]
        return against_bare(argv, environ, rounds)


CHECKS = (
    Check("corral --version", version, 2.5, rounds=31),
    Check("import corral", library, 1.3, rounds=31),
    Check("corral status, 150 rows, no engine", status, 4.5),
)
