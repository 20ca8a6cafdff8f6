"""The railway assistant with a scripted model and timetable; for real ones, write `agent:` in the config."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, Use, serve


def script(chat: Chat) -> Use | str:
    to = chat.find(r"\bto ([A-Z]\w+)")
    if not chat.heard("departures"):
        return Use("departures", to=to)
    found = chat.said("departures")
    if not isinstance(found, dict):
        return "I am sorry, the timetable is unavailable. Please try again later, or look at the board."
    train = f"The next train to {to} is {found['train']}, which leaves at {found['leaves']}"
    if not chat.heard("platform"):
        return Use("platform", train=found["train"])
    where = chat.said("platform")
    if not isinstance(where, dict):
        return f"{train}. I am sorry, I could not find out its platform; please look at the board."
    return f"{train} from platform {where['platform']}."


TIMETABLE = {
    "/departures": lambda asked: {"to": asked["to"], "train": "RE 7", "leaves": "14:05"},
    "/platforms": lambda asked: {"train": asked["train"], "platform": "12"},
}
world = serve(script, TIMETABLE)
os.environ.update(OPENAI_BASE_URL=f"{world}/v1", OPENAI_API_KEY="none-needed", TIMETABLE_URL=world)
from agent import graph

__all__ = ["graph"]
