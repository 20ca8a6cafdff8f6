"""pydantic-ai: a tool that fails is tried once more by the model; when it fails again, the run ends with an exception
that nobody catches. Its twin says that it could not. Two faults in a row show it."""

from corpus_kit import MODEL, TOOL_FAILURES, UNAVAILABLE, tool
from frameworks_kit import quick_model
from pydantic_ai import Agent, ModelRetry, UnexpectedModelBehavior
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def search(query: str) -> str:
    """What a flight costs."""
    try:
        return f"{tool('search', query=query)['price']} EUR"
    except TOOL_FAILURES as error:
        raise ModelRetry("The search is down; try again.") from error


async def bug(prompt: str) -> str:
    agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=quick_model())), tools=[search])
    try:
        return (await agent.run(prompt)).output
    except ModelAPIError:
        return UNAVAILABLE


async def twin(prompt: str) -> str:
    try:
        return await bug(prompt)
    except UnexpectedModelBehavior:
        return UNAVAILABLE
