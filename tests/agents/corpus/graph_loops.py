"""LangGraph: the ReAct agent hands a failed tool's error to the model, which asks for it again, and again: up to the
graph's limit of steps. Its twin's limit is that of a question that is answered by two tools at most. Only a tool that
stays down shows it."""

from corpus_kit import MODEL, PATIENCE_S, UNAVAILABLE, tool_async, world
from frameworks_kit import quick, quick_sync
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import ToolNode, create_react_agent
from openai import OpenAIError


async def search(query: str) -> str:  # a plain function would be asked in whichever thread of a pool is free
    """What a flight costs."""
    return f"{(await tool_async('search', query=query))['price']} EUR"


async def _answer(prompt: str, *, steps: int) -> str:
    given = {"max_retries": 0, "timeout": PATIENCE_S, "http_client": quick_sync(), "http_async_client": quick()}
    model = ChatOpenAI(model=MODEL, base_url=f"{world()}/v1", api_key="of-nobody", **given)
    graph = create_react_agent(model, ToolNode([search], handle_tool_errors=True))
    try:
        said = await graph.ainvoke({"messages": [("user", prompt)]}, {"recursion_limit": steps})
    except (GraphRecursionError, OpenAIError, ValueError, TypeError):
        return UNAVAILABLE
    return said["messages"][-1].content or UNAVAILABLE


async def bug(prompt: str) -> str:
    return await _answer(prompt, steps=15)


async def twin(prompt: str) -> str:
    return await _answer(prompt, steps=6)
