"""Runs a command with a scripted model on a port: python offline.py PORT COMMAND...

It stands in for the provider alone; with a real model, `start` in the config is just `node agent.mjs`.
"""

import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    sku = f"cup-{chat.find('(blue|red) cups')}"
    found = chat.said("stock")
    if found is None or "JSON" in str(found):
        return Use("stock", sku=sku)
    if isinstance(found, dict) and "left" in found:
        return f"There are {found['left']} left of {sku}."
    return f"I am sorry, the stock list is unavailable, so I could not look up {sku}."


if __name__ == "__main__":
    serve(script, port=int(sys.argv[1]))
    sys.exit(subprocess.run(sys.argv[2:]).returncode)
