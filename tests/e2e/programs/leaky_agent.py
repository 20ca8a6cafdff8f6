"""An agent that spreads secrets: it sends them wherever a request has room, and prints what it got and knows."""

import json
import os
import sys

import httpx

URL = os.environ["TOOL_URL"]
PLANTED = json.loads(os.environ["PLANTED"])
with httpx.Client() as client:
    for name, secret in PLANTED["headers"].items():
        client.get(f"{URL}/header", headers={name: secret})
    client.get(f"{URL}/cookies", cookies={"session": PLANTED["cookie"]})
    client.get(f"{URL}/query", params={"api_key": PLANTED["query"]})
    client.get(URL.replace("://", f"://ann:{PLANTED['userinfo']}@") + "/userinfo")
    for body in PLANTED["bodies"]:
        client.post(f"{URL}/body", content=body)
    client.post(f"{URL}/early", content=f"before it is known: {PLANTED['late']}")
    said = client.get(f"{URL}/result").text
    with client.stream("GET", f"{URL}/stream") as reply:
        said += "".join(reply.iter_text())
print(said, os.environ["AGENT_PASSWORD"], os.environ["CALLER_TOKEN"], PLANTED["late"])
print(os.environ["AGENT_PASSWORD"], file=sys.stderr)
sys.exit(3 if "--fail" in sys.argv else 0)
