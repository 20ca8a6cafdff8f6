"""Google's client with functions that it calls by itself: blocking, and asyncio for the stream."""

import os

from google import genai
from google.genai import types
from tools import search, seats

client = genai.Client(
    api_key="test", vertexai=False, http_options=types.HttpOptions(base_url=os.environ["UPSTREAM_URL"])
)


def answer(text):
    config = types.GenerateContentConfig(tools=[search, seats])
    return client.models.generate_content(model="gemini-2.5-flash", contents=text, config=config).text


async def answer_async(text):
    config = types.GenerateContentConfig(tools=[search, seats])
    return (await client.aio.models.generate_content(model="gemini-2.5-flash", contents=text, config=config)).text


async def stream(text):
    async for chunk in await client.aio.models.generate_content_stream(model="gemini-2.5-flash", contents=text):
        if chunk.text:
            yield chunk.text
