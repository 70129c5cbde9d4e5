"""A note board: a web application with a database, in the standard library only.

It knows nothing of corral. It reads PORT and DATABASE_URL, as twelve-factor applications do.
GET / shows the board's name and notes as JSON; POST / adds the body as a note.
"""

from __future__ import annotations

import json
import os
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DATABASE = os.environ["DATABASE_URL"].removeprefix("sqlite:///")


def notes() -> list[str]:
    """All notes, oldest first."""
    with sqlite3.connect(DATABASE) as conn:
        return [text for (text,) in conn.execute("SELECT text FROM note ORDER BY id")]


def add(text: str) -> None:
    """Keep one more note."""
    with sqlite3.connect(DATABASE) as conn:
        conn.execute("INSERT INTO note(text) VALUES (?)", (text,))


class Board(BaseHTTPRequestHandler):
    """Answers in JSON."""

    def do_GET(self) -> None:
        """Show the notes."""
        self._answer({"board": os.path.basename(os.getcwd()), "notes": notes()})

    def do_POST(self) -> None:
        """Add a note."""
        length = int(self.headers.get("Content-Length", "0"))
        add(self.rfile.read(length).decode())
        self._answer({"added": True})

    def _answer(self, value: dict[str, object]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve for ever."""
    with sqlite3.connect(DATABASE) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS note(id INTEGER PRIMARY KEY, text TEXT)")
    port = int(os.environ["PORT"])
    with ThreadingHTTPServer(("127.0.0.1", port), Board) as server:
        print(f"board on http://127.0.0.1:{port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
