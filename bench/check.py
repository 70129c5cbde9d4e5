"""Measure every figure that has a budget, print them, and exit 1 when one is beyond it.

Each module beside this one offers `CHECKS`; a new one is registered in the list below.
"""

from __future__ import annotations

import argparse
import sys

import claims
import containers
import hooks
import locks
import startup
from harness import Check, compile_source

ALL: tuple[Check, ...] = (
    *startup.CHECKS,
    *claims.CHECKS,
    *locks.CHECKS,
    *containers.CHECKS,
    *hooks.CHECKS,
)


def _measured(check: Check, *, thorough: bool) -> float:
    """The figure; one that is beyond its budget is measured again, longer, and then counts."""
    figure = check.measure(check.rounds * 5 if thorough else check.rounds)
    if check.keeps(figure) or thorough:
        return figure
    return check.measure(check.rounds * 3)


def main() -> int:
    """Print one line per check; 1 if any is beyond its budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thorough", action="store_true", help="five times the rounds")
    parser.add_argument("--only", default="", help="only checks whose name contains this")
    options = parser.parse_args()
    compile_source()
    chosen = [check for check in ALL if options.only in check.name]
    width = max((len(check.name) for check in chosen), default=0)
    beyond = 0
    for check in chosen:
        figure = _measured(check, thorough=options.thorough)
        kept = check.keeps(figure)
        beyond += not kept
        sign = ">=" if check.floor else "<="
        print(
            f"{check.name:<{width}}  {figure:8.2f} {check.unit}"
            f"  (budget {sign} {check.limit:g})  {'ok' if kept else 'BEYOND'}",
            flush=True,
        )
    print(f"{len(chosen) - beyond} within their budget, {beyond} beyond")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
