"""Real servers take their port from corral in every way that they can, and say so where not.

Each is started, asked, stopped and started again on the same port at once: directly, behind a
shell that stays, and behind `npm run`.
"""

from __future__ import annotations

import http.client
import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from support.command import Said, ask, corral
from support.registry import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PYTHON = (sys.executable, "-m")

_ASGI = """
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})
"""
_WSGI = """
def app(environ, start_response):
    start_response("200 OK", [])
    return [b"served"]
"""
_FLASK = """
from flask import Flask
app = Flask(__name__)
app.add_url_rule("/", view_func=lambda: "served")
"""
_SOCKETSERVER = """
import socketserver, sys
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.0 200 OK\\r\\n\\r\\nserved")
socketserver.TCPServer.allow_reuse_address = sys.argv[3] == "reuse"
socketserver.TCPServer((sys.argv[1], int(sys.argv[2])), Answer).serve_forever()
"""
_NODE = """
const [host, port, fd] = process.argv.slice(2);
const server = require('http').createServer((_, answer) => answer.end('served'));
if (fd) server.listen({fd: Number(fd)}); else server.listen(Number(port), host);
"""


class Server(NamedTuple):
    """How a server is told where to listen: by address, and by an inherited descriptor."""

    hold: tuple[str, ...]
    fd: tuple[str, ...] = ()
    engine: str = "servers"


_AT = "{host}:{port}"
SERVERS = {
    "http.server": Server((*_PYTHON, "http.server", "--bind", "{host}", "{port}"), engine=""),
    "socketserver": Server(
        (sys.executable, "serve.py", "{host}", "{port}", "reuse"), engine=""
    ),
    "node": Server(
        ("node", "serve.js", "{host}", "{port}"),
        ("node", "serve.js", "{host}", "{port}", "{fd}"),
        engine="node",
    ),
    "uvicorn": Server(
        (*_PYTHON, "uvicorn", "asgi:app", "--host", "{host}", "--port", "{port}"),
        (*_PYTHON, "uvicorn", "asgi:app", "--fd", "{fd}"),
    ),
    "gunicorn": Server(
        (*_PYTHON, "gunicorn", "wsgi:app", "--bind", _AT),
        (*_PYTHON, "gunicorn", "wsgi:app"),  # finds it by LISTEN_FDS
    ),
    "hypercorn": Server(
        (*_PYTHON, "hypercorn", "asgi:app", "--bind", _AT),
        (*_PYTHON, "hypercorn", "asgi:app", "--bind", "fd://{fd}"),
    ),
    "flask": Server(
        (*_PYTHON, "flask", "--app", "flask_app", "run", "--host", "{host}", "--port", "{port}"),
        ("env", "WERKZEUG_RUN_MAIN=true", "WERKZEUG_SERVER_FD={fd}", *_PYTHON, "flask", "--app",
         "flask_app", "run", "--host", "{host}", "--port", "{port}"),
    ),
    "granian": Server(
        (*_PYTHON, "granian", "--interface", "asgi", "--host", "{host}", "--port", "{port}",
         "asgi:app"),
    ),
}  # fmt: skip


def _behind_nothing(place: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    del place
    return argv


def _behind_a_shell(place: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    """A shell that stays above the server, as it does where something follows."""
    del place
    return ("sh", "-c", f"{' '.join(argv)}; exit $?")


def _behind_npm(place: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    """`npm run`: node, then a shell, then the server; the port comes from the environment."""
    script = " ".join(argv).replace("{host}", "127.0.0.1").replace("{port}", "$PORT")
    script = script.replace("{fd}", "3")
    (place / "package.json").write_text(json.dumps({"scripts": {"serve": script}}))
    return ("npm", "run", "--silent", "serve")


_WRAPPERS = {"direct": _behind_nothing, "shell": _behind_a_shell, "npm": _behind_npm}


@pytest.fixture
def place(private_root: Path) -> Path:
    """A directory with an application for each server; its name is new, and so are its ports."""
    directory = private_root / f"place-{private_root.name}"
    directory.mkdir()
    for name, text in {
        "asgi.py": _ASGI, "wsgi.py": _WSGI, "flask_app.py": _FLASK,
        "serve.py": _SOCKETSERVER, "serve.js": _NODE,
    }.items():  # fmt: skip
        (directory / name).write_text(text)
    return directory


def _start(place: Path, argv: tuple[str, ...], *options: str, **more: Any) -> Said:
    words = ("--json", "--detach", "--name", "web", "--port", "web", "--wait-ready", "40")
    return corral(place, "run", *words, *options, "--", *argv, **more)


def _asked(said: Said) -> None:
    found = said.data
    assert found["ready"] is True
    connection = http.client.HTTPConnection("127.0.0.1", found["ports"]["web"], timeout=10)
    try:
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def _need(require_engine: Callable[[str], None], server: Server) -> None:
    if server.engine:
        require_engine(server.engine)


@pytest.mark.parametrize("wrapper", _WRAPPERS)
@pytest.mark.parametrize("name", SERVERS)
def test_it_binds_over_a_held_port_and_again_after_a_restart(
    place: Path,
    state_dir: Path,
    require_engine: Callable[[str], None],
    name: str,
    wrapper: str,
) -> None:
    server = SERVERS[name]
    _need(require_engine, server)
    if wrapper == "npm":
        require_engine("node")
    argv = _WRAPPERS[wrapper](place, server.hold)
    ports = set()
    for _ in range(2):
        said = _start(place, argv)
        _asked(said)
        ports.add(said.data["ports"]["web"])
        assert ask(place, "stop", "web")["remaining"] == []
        assert recorded(state_dir) == []
    assert len(ports) == 1


@pytest.mark.parametrize("name", [name for name, server in SERVERS.items() if server.fd])
@pytest.mark.parametrize("shell", [False, True], ids=["direct", "shell that execs"])
def test_it_takes_an_open_socket_and_again_after_a_restart(
    place: Path, require_engine: Callable[[str], None], name: str, shell: bool
) -> None:
    server = SERVERS[name]
    _need(require_engine, server)
    argv = ("sh", "-c", f"exec {' '.join(server.fd)}") if shell else server.fd
    for _ in range(2):
        _asked(_start(place, argv, "--handoff", "fd"))
        assert ask(place, "stop", "web")["remaining"] == []


@pytest.mark.parametrize("name", ["http.server", "node", "uvicorn"])
def test_it_binds_a_port_that_was_released(
    place: Path, require_engine: Callable[[str], None], name: str
) -> None:
    server = SERVERS[name]
    _need(require_engine, server)
    _asked(_start(place, server.hold, "--handoff", "release"))


def test_a_server_without_reuseaddr_is_told_to_have_its_port_released(place: Path) -> None:
    argv = (sys.executable, "serve.py", "{host}", "{port}", "plain")
    (problem,) = _start(place, argv, check=1).document["problems"]
    assert "Address already in use" in problem["message"]
    assert "--handoff release" in problem["remedy"]
    _asked(_start(place, argv, "--handoff", "release"))


def test_npm_does_not_pass_a_socket_on_and_the_error_says_which_way_works(
    place: Path, require_engine: Callable[[str], None]
) -> None:
    require_engine("servers")
    require_engine("node")
    argv = _behind_npm(place, SERVERS["uvicorn"].fd)
    (problem,) = _start(place, argv, "--handoff", "fd", check=1).document["problems"]
    assert "--handoff hold or release" in problem["remedy"]
    _asked(_start(place, _behind_npm(place, SERVERS["uvicorn"].hold)))


def test_a_server_that_leaves_an_open_socket_alone_is_an_error_naming_both(
    place: Path, require_engine: Callable[[str], None]
) -> None:
    require_engine("servers")
    argv = (*_PYTHON, "granian", "--interface", "asgi", "--port", "0", "asgi:app")
    options = ("--handoff", "fd", "--wait-ready", "4")
    (problem,) = _start(place, argv, *options, check=1).document["problems"]
    port = ask(place, "status")["environment"]["ports"]["web"]
    assert f"{port} (web)" in problem["message"]
    assert "--handoff hold or release" in problem["remedy"]
