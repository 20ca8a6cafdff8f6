"""A scripted model and carrier while a command runs: python offline.py python -m pytest --flakestorm-record"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    parcel = chat.find(r"\bP-\d+\b")
    found = chat.said("track")
    if found is None:
        return Use("track", parcel=parcel)
    if "at" in found:
        return f"Parcel {parcel} is in {found['at']} and arrives {found['arrives']}."
    return f"I am sorry, the carrier is unavailable, so I do not know where parcel {parcel} is."


if __name__ == "__main__":
    world = serve(script, {"/parcels/P-301": lambda asked: {"parcel": "P-301", "at": "Bergen", "arrives": "tomorrow"}})
    env = {"OPENAI_BASE_URL": f"{world}/v1", "OPENAI_API_KEY": "none-needed", "CARRIER_URL": world}
    sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **env}).returncode)
