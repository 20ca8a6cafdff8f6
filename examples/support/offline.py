"""The support chat with a model beside it that follows a script: the same app, one more route.

$ python offline.py 8000      with OPENAI_BASE_URL at http://127.0.0.1:8000/offline/v1
"""

import sys
from pathlib import Path

from agent import app
from aiohttp import web

sys.path.append(str(Path(__file__).parents[1]))
from scripted import Chat, reply


def script(chat: Chat) -> str:
    order = chat.find(r"\b[A-Z]-\d{4}\b")
    if not order:
        return "Which order is this about, please?"
    if not chat.find("new one|new lamp"):
        return f"I am sorry about order {order}. Would you like a new one, or your money back?"
    return f"A new lamp for order {order} is on its way to you."


async def model(request: web.Request) -> web.Response:
    status, said = reply(script, request.path, await request.json())
    return web.json_response(said, status=status)


app.router.add_post("/offline/v1/chat/completions", model)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
