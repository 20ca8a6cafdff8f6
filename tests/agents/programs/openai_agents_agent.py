"""An agent of OpenAI's Agents SDK, over chat completions."""

import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from tools import search, seats

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=f"{os.environ['UPSTREAM_URL']}/v1", api_key="test")
agent = Agent(
    name="Traveller",
    model=OpenAIChatCompletionsModel("gpt-4o", client),
    tools=[function_tool(search), function_tool(seats)],
)


async def answer(text):
    return (await Runner.run(agent, text)).final_output


async def stream(text):
    async for event in Runner.run_streamed(agent, text).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta
