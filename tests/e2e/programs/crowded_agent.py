"""An agent that greets whoever asks; MODE says how it copes with several at once.

`safe`; `global`: keeps who asks in one place; `dies`: ends when two ask at once; `full`: turns away whoever comes while
another is served; `talks`: greets all that were named in a session. Each greeting takes until one more request has
come, at most 20 ms; with UNTIL, until so many are served at once.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, UNTIL = os.environ.get("MODE", "safe"), int(os.environ.get("UNTIL", "0"))
BUSY = threading.Condition()
TALKS: dict[str, list[str]] = {}
STATE = {"come": 0, "now": 0, "peak": 0, "who": ""}


class Agent(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        who = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        with BUSY:
            STATE["come"] += 1
            STATE["now"] += 1
            STATE["peak"] = max(STATE["peak"], STATE["now"])
            STATE["who"] = who
            crowded = STATE["now"] > 1
            if crowded and MODE == "dies":
                os._exit(7)
            BUSY.notify_all()
            if UNTIL:
                BUSY.wait_for(lambda: STATE["peak"] >= UNTIL, 20)
            else:
                BUSY.wait_for(lambda come=STATE["come"]: STATE["come"] > come, 0.02)
            STATE["now"] -= 1
            names = TALKS.setdefault(self.headers.get("X-Session", ""), [])
            names.append(who)
            who = " and ".join(names) if MODE == "talks" else who
            said = f"hello {STATE['who'] if MODE == 'global' else who}, from {os.getpid()}, {STATE['peak']} at once"
        body = json.dumps({"output": said}).encode()
        self.send_response(503 if crowded and MODE == "full" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
