"""OpenAI's Agents SDK: what a tool says when it fails is left to a function, and this one says a price. Its twin has
the SDK tell the model that it failed."""

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.exceptions import AgentsException
from agents.tool import default_tool_error_function
from corpus_kit import MODEL, UNAVAILABLE, tool
from frameworks_kit import quick_model
from openai import OpenAIError

set_tracing_disabled(True)


def search(query: str) -> str:
    """What a flight costs."""
    return f"{tool('search', query=query)['price']} EUR"


async def _answer(prompt: str, when_it_fails) -> str:
    agent = Agent(
        name="Traveller",
        model=OpenAIChatCompletionsModel(MODEL, quick_model()),
        tools=[function_tool(search, failure_error_function=when_it_fails)],
    )
    try:
        return (await Runner.run(agent, prompt, max_turns=4)).final_output or UNAVAILABLE
    except (AgentsException, OpenAIError):
        return UNAVAILABLE


async def bug(prompt: str) -> str:
    return await _answer(prompt, lambda context, error: "99 EUR")


async def twin(prompt: str) -> str:
    return await _answer(prompt, default_tool_error_function)
