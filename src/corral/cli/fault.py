"""A fault of corral's own, told in words; the traceback goes to who asks for it."""

from __future__ import annotations

import os
import sys

from corral.cli.output import EXIT_USAGE, Answer, Problem, show

_REMEDY = (
    "this is a fault of corral's: run it again with CORRAL_TRACEBACK=1 and report what it says"
)


def report_fault(error: Exception) -> int:
    """Say what happened, as a document with `--json`; returns the exit status."""
    if os.environ.get("CORRAL_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    problem = Problem("internal", f"{type(error).__name__}: {error}", None, _REMEDY)
    answer = Answer({}, problems=(problem,), status=EXIT_USAGE)
    return show(words[0] if words else "", answer, as_json="--json" in own)
