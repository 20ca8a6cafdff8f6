"""pydantic-ai, streaming: an answer that ended for its length is given for the whole. Its twin looks why it ended."""

from corpus_kit import MODEL, UNAVAILABLE
from frameworks_kit import quick_model
from httpx import TransportError
from openai import OpenAIError
from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def _answer(prompt: str) -> tuple[str, str | None]:
    agent = Agent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=quick_model())), retries=0)
    words: list[str] = []
    try:
        async with agent.run_stream(prompt) as result:
            async for word in result.stream_text(delta=True, debounce_by=None):
                words.append(word)
            return "".join(words) or UNAVAILABLE, result.response.finish_reason
    except (AgentRunError, OpenAIError, TransportError):
        return UNAVAILABLE, None


async def bug(prompt: str) -> str:
    return (await _answer(prompt))[0]


async def twin(prompt: str) -> str:
    said, finish = await _answer(prompt)
    return said if finish == "stop" else UNAVAILABLE
