"""What the agents of the corpus share: their world's address, their tools, their model. Nothing here tries again."""

from __future__ import annotations

import os
from typing import Any

import httpx
from openai import AsyncOpenAI, OpenAI

MODEL = "gpt-4o"
PATIENCE_S = 20
"""A busy machine takes long for a reply, and that is no fault."""
UNAVAILABLE = "Sorry, this is unavailable right now."
TOOL_FAILURES = (httpx.HTTPError, ValueError, KeyError)


def world() -> str:
    """Where the tools and the model are."""
    return os.environ["CORPUS_WORLD"]


def tool(name: str, *, headers: dict[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a tool over HTTP."""
    with httpx.Client(timeout=PATIENCE_S) as client:
        reply = client.post(f"{world()}/{name}", json=arguments, headers=headers)
        reply.raise_for_status()
        return dict(reply.json())


async def tool_async(name: str, **arguments: Any) -> dict[str, Any]:
    """The same without blocking."""
    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        reply = await client.post(f"{world()}/{name}", json=arguments)
        reply.raise_for_status()
        return dict(reply.json())


def model() -> OpenAI:
    """A client that does not try again by itself, so that what an agent does is its own."""
    return OpenAI(base_url=f"{world()}/v1", api_key="of-nobody", max_retries=0, timeout=PATIENCE_S)


def model_async() -> AsyncOpenAI:
    """The same without blocking."""
    return AsyncOpenAI(base_url=f"{world()}/v1", api_key="of-nobody", max_retries=0, timeout=PATIENCE_S)


def twice(name: str, **arguments: Any) -> dict[str, Any] | None:
    """A tool that only reads, tried once more if it fails; None if it fails again."""
    for _ in range(2):
        try:
            return tool(name, **arguments)
        except TOOL_FAILURES:
            continue
    return None
