"""How many renders per second each format makes in one process; exits 1 below the budget.

Run as `python bench/render.py`. The budget is 10,000 per second for the simple formats, on eight
variables of the kind that an environment has, with the header.
"""

from __future__ import annotations

import sys
import time

from corral.render.formats import FORMATS, render_text
from corral.render.spec import DbIsolation, EnvIsolationSpec
from corral.render.stateless import generate_dotenv

BUDGET = 10_000
SIMPLE = {"dotenv", "shell", "json", "github", "direnv"}
SECONDS = 0.5
ROUNDS = 3

VARIABLES = {
    "PORT": "22001",
    "WEB_PORT": "22001",
    "API_PORT": "22002",
    "DATABASE_URL": "postgresql://localhost/acme?options=-csearch_path%3Dacme_7f3a2b1c",
    "API_URL": "http://127.0.0.1:22002",
    "COMPOSE_PROJECT_NAME": "acme-feature-7f3a2b1c",
    "GREETING": "it's a value with spaces",
    "LOG_LEVEL": "debug",
}


def rate(render: object) -> float:
    """Calls per second: the best of a few rounds, for a busy machine only ever slows down."""
    assert callable(render)
    best = 0.0
    for _ in range(ROUNDS):
        calls, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < SECONDS:
            for _repeat in range(100):
                render()
            calls += 100
        best = max(best, calls / spent)
    return best


def main() -> int:
    """Print the table; 1 if a simple format misses the budget."""
    rates = {
        fmt: rate(lambda fmt=fmt: render_text(fmt, VARIABLES, title="corral: acme-feature"))
        for fmt in FORMATS
    }
    spec = EnvIsolationSpec("fb563322", port=8001, db_isolation=DbIsolation.SCHEMA)
    rates["generate_dotenv"] = rate(lambda: generate_dotenv(spec))
    for name, value in rates.items():
        print(f"{name:16} {value:10,.0f} renders/s")
    slow = [name for name in (*SIMPLE, "generate_dotenv") if rates[name] < BUDGET]
    if slow:
        print(f"below {BUDGET:,}: {', '.join(sorted(slow))}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
