"""A tool loop by hand, over Ollama's own client."""

import json
import os

import ollama
from tools import search, seats

FUNCTIONS = {"search": search, "seats": seats}


def answer(text):
    client = ollama.Client(host=os.environ["UPSTREAM_URL"])
    messages = [{"role": "user", "content": text}]
    while True:
        said = client.chat("qwen3", messages=messages, tools=[search, seats]).message
        if not said.tool_calls:
            return said.content
        messages.append(said)
        for call in said.tool_calls:
            try:
                result = json.dumps(FUNCTIONS[call.function.name](**call.function.arguments))
            except Exception as error:
                result = f"Error: {error}"
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})


async def stream(text):
    client = ollama.AsyncClient(host=os.environ["UPSTREAM_URL"])
    async for part in await client.chat("qwen3", messages=[{"role": "user", "content": text}], stream=True):
        if part.message.content:
            yield part.message.content
