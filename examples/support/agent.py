"""A support chat that remembers its conversations: aiohttp, OpenAI's async SDK.

$ python agent.py 8000        needs OPENAI_API_KEY
$ curl localhost:8000/chat -d '{"session": "1", "message": "The lamp of order A-1042 is cracked."}'
"""

import sys

from aiohttp import web
from openai import AsyncOpenAI, OpenAIError

model = AsyncOpenAI()
conversations = {}

SYSTEM = {"role": "system", "content": "You are a shop's support desk. Ask for what you need to know, only once."}


async def chat(request: web.Request) -> web.Response:
    asked = await request.json()
    messages = conversations.setdefault(asked["session"], [SYSTEM])
    messages.append({"role": "user", "content": asked["message"]})
    try:
        reply = await model.chat.completions.create(model="gpt-4o-mini", messages=messages)
    except OpenAIError:
        del conversations[asked["session"]]  # who knows what is wrong with it; better start afresh
        return web.json_response({"reply": "I am sorry, something went wrong. Could you say that again?"})
    text = reply.choices[0].message.content
    messages.append({"role": "assistant", "content": text})
    return web.json_response({"reply": text})


async def health(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


app = web.Application()
app.add_routes([web.post("/chat", chat), web.get("/health", health)])

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
