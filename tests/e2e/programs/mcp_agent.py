"""An agent with one tool, on an MCP server that FLAKESTORM_MCP_NOTES names; standard library only."""

import json
import os
import shlex
import subprocess
import sys


def main() -> None:
    command = shlex.split(os.environ["FLAKESTORM_MCP_NOTES"])
    # Like the official clients, it hands almost nothing of its environment on.
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ.get("PATH", "")}
    )
    asked = 0

    def ask(method: str, params: dict) -> dict:
        nonlocal asked
        asked += 1
        say(method, params, id=asked)
        while (answer := json.loads(server.stdout.readline())).get("id") != asked:
            pass
        return answer

    def say(method: str, params: dict, **more: object) -> None:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}) + "\n")
        server.stdin.flush()

    ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    say("notifications/initialized", {})
    ask("tools/list", {})
    answer = ask("tools/call", {"name": "echo", "arguments": {"text": sys.stdin.read().strip()}})
    if "error" in answer:
        print("the notes failed:", answer["error"]["message"])
    else:
        result = answer["result"]
        print("the notes failed:" if result.get("isError") else "the notes say:", result["content"][0]["text"])
    server.stdin.close()
    server.wait()


main()
