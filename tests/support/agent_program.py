"""A stand-in for a coding agent's process: runs what it is told to, as an agent's tools would.

Copied to a file that is called as the agent's program is. It listens on the Unix socket that its
first argument names; each connection brings one request as JSON and gets one answer. Its second
argument is the variables that it sets for its children, as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import Any


def answer(request: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """Run one program as a child."""
    environ = {**os.environ, **variables, **request.get("env", {})}
    options: dict[str, Any] = {
        "env": {name: value for name, value in environ.items() if value is not None},
        "cwd": request.get("cwd"),
        "text": True,
        "errors": "backslashreplace",
    }
    if request.get("background"):
        null = subprocess.DEVNULL
        child = subprocess.Popen(request["argv"], stdin=null, stdout=null, stderr=null, **options)
        threading.Thread(target=child.wait, daemon=True).start()
        return {"pid": child.pid}
    done = subprocess.run(
        request["argv"],
        input=request.get("input", ""),
        capture_output=True,
        timeout=request.get("timeout", 60),
        check=False,
        **options,
    )
    return {"status": done.returncode, "out": done.stdout, "err": done.stderr}


def serve(connection: socket.socket, variables: dict[str, str]) -> None:
    """One request."""
    with connection, connection.makefile("rwb") as file:
        request = json.loads(file.readline())
        file.write(json.dumps(answer(request, variables)).encode() + b"\n")


def main() -> None:
    """Answer requests until killed."""
    variables = json.loads(sys.argv[2])
    if variables.pop("pid_variable", None):
        variables["CLAUDE_PID"] = str(os.getpid())
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{sys.argv[1]}.new")
    server.listen()
    with open(f"{sys.argv[1]}.pid", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(f"{sys.argv[1]}.new", sys.argv[1])
    while True:
        connection, _ = server.accept()
        threading.Thread(target=serve, args=(connection, variables), daemon=True).start()


if __name__ == "__main__":
    main()
