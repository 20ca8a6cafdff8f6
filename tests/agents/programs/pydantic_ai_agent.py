"""A pydantic-ai agent."""

import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tools import search, seats

provider = OpenAIProvider(base_url=f"{os.environ['UPSTREAM_URL']}/v1", api_key="test")
agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), tools=[search, seats])


async def answer(text):
    return (await agent.run(text)).output


async def stream(text):
    async with agent.run_stream(text) as result:
        async for word in result.stream_text(delta=True, debounce_by=None):
            yield word
