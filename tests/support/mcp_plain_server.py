"""An MCP server over stdio in a few lines, standard library only, so that it is there at once.

It knows the tools `echo`, `environment` and `slow` (reports progress first), asks its client by `ask`, prints noise on
`noise`, announces something on `tell`, and ends with code 7 on `die`. What it is told besides requests it writes to
stderr. Called with the word `strict`, it answers nobody who has not initialised a session before.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def say(**document: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **document}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any] | None:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def call(params: dict[str, Any]) -> str:
    name, given = params["name"], params.get("arguments", {})
    if name == "echo":
        return str(given["text"])
    if name == "environment":
        return os.environ.get(given["name"], "unset")
    if name == "slow":
        say(method="notifications/progress", params={"progressToken": params["_meta"]["progressToken"], "progress": 1})
    if name == "ask":
        say(id="mine", method="sampling/createMessage", params={})
        answer = hear()
        return json.dumps(answer and answer.get("result"))
    if name == "tell":
        say(method="notifications/message", params={"level": "info", "data": "telling"})
    if name == "noise":
        print("this is no JSON", flush=True)
    if name == "die":
        sys.exit(7)
    return "done"


def main() -> None:
    open_to_all = "strict" not in sys.argv
    while (message := hear()) is not None:
        if message.get("method") == "notifications/initialized":
            open_to_all = True
        if "id" not in message:
            print(message.get("method"), file=sys.stderr, flush=True)
        elif message["method"] != "initialize" and not open_to_all:
            say(id=message["id"], error={"code": -32602, "message": "not initialised"})
        elif message["method"] == "tools/call":
            say(id=message["id"], result={"content": [{"type": "text", "text": call(message["params"])}]})
        elif message["method"] == "initialize":
            version = message["params"].get("protocolVersion", "2025-11-25")
            server = {"name": "plain", "version": "1"}
            say(
                id=message["id"],
                result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server},
            )
        elif message["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "environment", "slow")]
            say(id=message["id"], result={"tools": tools})
        else:
            say(id=message["id"], result={"method": message["method"]})


if __name__ == "__main__":
    main()
