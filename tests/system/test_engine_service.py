"""The service of a podman program that no socket leads to: a stand-in that is slow to start."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

from corral.backends.engine.endpoints import Endpoint
from corral.backends.engine.service import Service

if TYPE_CHECKING:
    from pathlib import Path

# Its socket is there a good while before it listens.
_SLOW = """#!{python}
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[-1].removeprefix("unix://"))
time.sleep(0.5)
server.listen()
time.sleep(600)
"""


def test_a_service_is_there_once_it_accepts_not_once_its_socket_is_a_file(
    private_root: Path,
) -> None:
    program = private_root / "podman"
    program.write_text(_SLOW.format(python=sys.executable))
    program.chmod(0o755)
    endpoint = Endpoint("podman", f"program:{json.dumps([str(program)])}")
    service = Service(endpoint, dict(os.environ), time.monotonic() + 60)
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(service.endpoint.path)
    finally:
        service.close()
