"""An agent that answers as often as the file `go` allows, and counts in `asked` how often it was asked.

Every instance works in the same folder; a lock keeps their counting apart.
"""

import argparse
import fcntl
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TICK = threading.Event()


def counted(name: str, *, most: int | None = None) -> bool:
    """Add one to the number in this file, unless it has reached `most`."""
    with Path("lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = Path(name)
        count = int(file.read_text()) if file.exists() else 0
        if most is not None and count >= most:
            return False
        file.write_text(str(count + 1))
        return True


def allowed() -> int:
    try:
        return int(Path("go").read_text() or 0)
    except (OSError, ValueError):
        return 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        counted("asked")
        while not counted("answered", most=allowed()):
            TICK.wait(0.02)
        self._reply({"output": "done"})

    def _reply(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Handler).serve_forever()
