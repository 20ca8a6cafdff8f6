"""The office assistant with a model that follows a script; for a real one, write `agent:` in the config.

`python offline.py rooms` and `python offline.py mail` are MCP servers on stdio, which stand in for yours.
"""

import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve

TOOLS = {
    "rooms": {"book_room": lambda asked: f"Room 4.12 is booked for {asked['time']}."},
    "mail": {"send_mail": lambda asked: f"The mail to {asked['to']} is sent."},
}
PARAMETERS = {"book_room": ["time"], "send_mail": ["to", "text"]}


def script(chat: Chat) -> Use | str:
    time, team = chat.find(r"\b\d\d:\d\d\b"), chat.find(r"the (\w+) team")
    if not chat.heard("book_room"):
        return Use("book_room", time=time)
    room = chat.said("book_room")
    if "is booked" not in room:
        return "I am sorry, I could not book a room, so nobody has been invited. Please try again later."
    if not chat.heard("send_mail"):
        return Use("send_mail", to=team, text=f"We meet at {time}. {room}")
    if "is sent" not in chat.said("send_mail"):
        return f"{room} I am sorry, I could not send the invitation; please tell the {team} team yourself."
    return f"{room} The {team} team has been invited."


def stdio(name: str) -> None:
    """A server as small as they get: its requests on stdin, one on each line."""
    tools = TOOLS[name]
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        match asked["method"]:
            case "initialize":
                version, about = asked["params"]["protocolVersion"], {"name": name, "version": "1"}
                said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            case "tools/list":
                fields = {tool: {name: {"type": "string"} for name in PARAMETERS[tool]} for tool in tools}
                schemas = {tool: {"type": "object", "properties": fields[tool]} for tool in tools}
                said = {"tools": [{"name": tool, "inputSchema": schemas[tool]} for tool in tools]}
            case "tools/call":
                tool, given = asked["params"]["name"], asked["params"]["arguments"]
                said = {"content": [{"type": "text", "text": tools[tool](given)}]}
            case method:
                error = {"code": -32601, "message": f"there is no method {method}"}
                print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
                continue
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)


if __name__ == "__main__":
    stdio(sys.argv[1])
else:
    os.environ.update(OPENAI_BASE_URL=serve(script) + "/v1", OPENAI_API_KEY="none-needed")
    from agent import answer

    __all__ = ["answer"]
