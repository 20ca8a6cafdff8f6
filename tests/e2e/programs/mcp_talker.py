"""An agent that calls the tools it is told to on an MCP server, and prints what it heard; standard library only.

FLAKESTORM_MCP_NOTES names the server, a command line or a URL (streamable HTTP, answered in JSON). What the server asks
of its client is answered with the text of SAMPLE.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request

server = os.environ["FLAKESTORM_MCP_NOTES"]
heard = []


def message(method: str, params: dict, **more: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()


class Pipe:
    def __init__(self) -> None:
        self.process = subprocess.Popen(shlex.split(server), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def say(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, line: bytes) -> dict:
        self.say(line)
        while "method" in (told := json.loads(self.process.stdout.readline())):
            heard.append(told["method"])
            if "id" in told:
                answer = {"jsonrpc": "2.0", "id": told["id"], "result": {"text": os.environ.get("SAMPLE", "sampled")}}
                self.say(json.dumps(answer).encode())
        return told

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Web:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def ask(self, line: bytes, method: str = "POST") -> dict:
        with urllib.request.urlopen(urllib.request.Request(server, line, self.headers, method=method)) as reply:
            if session := reply.headers.get("Mcp-Session-Id"):
                self.headers = {**self.headers, "Mcp-Session-Id": session}
            return json.loads(reply.read() or b"{}")

    say = ask

    def end(self) -> None:
        self.ask(None, "DELETE")


def main() -> None:
    way = Web() if server.startswith("http") else Pipe()
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "talker", "version": "1"}}
    way.ask(message("initialize", hello, id=1))
    way.say(message("notifications/initialized", {}))
    said = []
    for number, tool in enumerate(sys.stdin.read().split(), 2):
        answer = way.ask(message("tools/call", {"name": tool, "arguments": {"text": "hi"}}, id=number))
        said.append(answer["result"]["content"][0]["text"] if "result" in answer else answer["error"]["message"])
    way.end()
    print(*said, "|", *heard)


main()
