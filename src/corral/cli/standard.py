"""The three standard streams, whatever the caller left of them."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def ensure_open() -> None:
    """See that descriptors 0 to 2 are open, before any file could get one of these numbers.

    Otherwise words meant for a closed stdout would be written into whatever was opened next.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Closed by the caller: the lowest free number is this one.
            os.open(os.devnull, os.O_RDWR)
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        # Text is UTF-8 whatever the locale says, and a path that is none keeps its bytes.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (for the process's life)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as above)
