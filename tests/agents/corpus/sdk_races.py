"""OpenAI's Agents SDK: two tools of one turn run side by side and note down what they found, and the notes are read in
the order in which they were made. Its twin notes down which is which."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.exceptions import AgentsException
from corpus_kit import MODEL, TOOL_FAILURES, UNAVAILABLE, tool_async
from frameworks_kit import AT_ONCE, quick_model
from openai import OpenAIError

set_tracing_disabled(True)


async def _notes(prompt: str) -> dict[str, object]:
    notes: dict[str, object] = {}

    async def note(name: str) -> str:
        try:
            notes[name] = (await tool_async(name))["value"]
        except TOOL_FAILURES:
            return UNAVAILABLE
        return "Noted."

    async def weather() -> str:
        """The weather."""
        return await note("weather")

    async def stock() -> str:
        """How many seats are left."""
        await asyncio.sleep(0.1)
        return await note("stock")

    model = OpenAIChatCompletionsModel(MODEL, quick_model())
    agent = Agent(name="Both", instructions=AT_ONCE, model=model, tools=[function_tool(weather), function_tool(stock)])
    try:
        await Runner.run(agent, prompt, max_turns=4)
    except (AgentsException, OpenAIError):
        return {}
    return notes


async def bug(prompt: str) -> str:
    notes = list((await _notes(prompt)).values())
    return f"Weather: {notes[0]}. Stock: {notes[1]}." if len(notes) == 2 else UNAVAILABLE


async def twin(prompt: str) -> str:
    notes = await _notes(prompt)
    return f"Weather: {notes['weather']}. Stock: {notes['stock']}." if len(notes) == 2 else UNAVAILABLE
