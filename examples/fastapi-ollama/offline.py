"""The research assistant with a model and an encyclopedia beside it: the same app, two more routes.

$ uvicorn offline:app --port 8790     with OLLAMA_HOST and ENCYCLOPEDIA_URL at http://127.0.0.1:8790/offline
"""

import re
import sys
from pathlib import Path

from agent import app
from fastapi import Request

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, log, reply


def script(chat: Chat) -> str:
    page, _, question = chat.users[-1].removeprefix("Page: ").partition("\n\nQuestion: ")
    if page != "(empty)":
        return page
    # Without a page it says what it takes for true, as models do.
    return f"{question.removeprefix('How high is ').rstrip('?')} is 2,500 m high."


@app.post("/offline/api/chat", include_in_schema=False)
async def model(request: Request) -> dict:
    return reply(script, "/api/chat", await request.json())[1]


@app.get("/offline/pages", include_in_schema=False)
def pages(q: str) -> dict:
    log("GET /pages")
    mountain = re.sub("How high is |[?]", "", q)
    return {"title": f"the article on {mountain}", "text": f"{mountain} is 2,469 m high and stands in Norway."}
