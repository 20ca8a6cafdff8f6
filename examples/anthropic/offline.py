"""The policy desk with a model that follows a script; for a real one, write `agent:` for `offline:` in the config."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    if not chat.heard("read_policy"):
        return Use("read_policy", topic="delivery" if chat.find("(?i)deliver") else "returns")
    said = chat.said("read_policy")
    if said.startswith("Error"):
        return "I am sorry, our handbook is unavailable, so I could not check that. Please ask again later."
    return f"I have looked that up for you. {said}"


os.environ.update(ANTHROPIC_BASE_URL=serve(script), ANTHROPIC_API_KEY="none-needed")
from agent import TOOLS, answer

__all__ = ["TOOLS", "answer"]
