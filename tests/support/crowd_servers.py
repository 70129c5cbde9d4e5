"""Campaign: many workers claim ports, wait, and start servers; strangers take all they can get.

`python -m support.crowd_servers COUNT PORTS SECONDS`. Says how many servers were started, and how
many could not bind their port or were somebody else's.
"""

from __future__ import annotations

import errno
import os
import random
import socket
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import corral
from support.crowd import Crowd, say

_WAIT = 0.5  # seconds between claim and start; a server takes up to 0.3 s to listen
_STRANGERS = 2
_MOST = 400  # sockets that a stranger keeps


class _Answer(BaseHTTPRequestHandler):
    """Says whose server it is."""

    def do_GET(self) -> None:
        body = str(os.getpid()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_arguments: object) -> None:  # noqa: A002 (inherited)
        del format


def _serve(ports: int, report: int) -> None:
    """One worker: a line of three numbers: started, not bound, answered by somebody else."""
    run = corral.allocate_port_run(ports, "crowd")
    time.sleep(_WAIT)
    servers, taken = [], 0
    for port in run.ports:
        try:
            servers.append(ThreadingHTTPServer(("127.0.0.1", port), _Answer))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            taken += 1
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    foreign = 0
    for server in servers:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", timeout=30) as answer:
            foreign += answer.read() != str(os.getpid()).encode()
    os.write(report, f"{len(servers)} {taken} {foreign}\n".encode())
    for server in servers:
        server.server_close()
    run.release()


def _grab() -> None:
    """Ask the kernel for free ports in every way, as fast as can be, and keep many of them."""
    kept: list[socket.socket] = []
    while True:
        family, host = random.choice(
            ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, ""), (socket.AF_INET6, "::1"))
        )
        asker = socket.socket(family)
        if random.random() < 0.5:
            asker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asker.bind((host, 0))
            if random.random() < 0.5:
                asker.listen()
        except OSError:
            # All are taken for the moment, by this very process.
            asker.close()
        else:
            kept.append(asker)
        while len(kept) > _MOST or (kept and asker.fileno() < 0):
            kept.pop(random.randrange(len(kept))).close()


def _round(count: int, ports: int) -> list[list[int]]:
    read, write = os.pipe()
    with (
        Crowd(lambda _number: _grab(), _STRANGERS),
        Crowd(lambda _number: _serve(ports, write), count) as workers,
    ):
        os.close(write)
        statuses = workers.wait()
    with open(read) as lines:
        found = [[int(word) for word in line.split()] for line in lines]
    if any(statuses) or len(found) != count:
        raise RuntimeError(f"of {count} workers {len(found)} reported")
    return found


def main() -> None:
    """Run rounds until the time is over, one at least."""
    count, ports, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    end = time.monotonic() + seconds
    rounds = [_round(count, ports)]
    while time.monotonic() < end:
        rounds.append(_round(count, ports))
    lines = [line for each in rounds for line in each]
    started, taken, foreign = (sum(column) for column in zip(*lines, strict=True))
    left = len(corral.list_allocations("crowd"))
    say(
        {
            "rounds": len(rounds),
            "servers": started,
            "in_use": taken,
            "foreign": foreign,
            "left": left,
        }
    )


if __name__ == "__main__":
    main()
