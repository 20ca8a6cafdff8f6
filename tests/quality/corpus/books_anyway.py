"""An MCP tool that says `isError`: the agent takes any result for a booking. Its twin reads which room it was given."""

import re

from corpus_kit import PATIENCE_S, UNAVAILABLE, world
from httpx import HTTPError
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextContent


async def _book() -> CallToolResult | None:
    """The result; None where there is none. What goes wrong on the way may come out of the client's task group."""
    try:
        async with Client(f"{world()}/mcp", mode="legacy", read_timeout_seconds=PATIENCE_S) as client:
            return await client.call_tool("book_room", {"time": "15:00"})
    except (HTTPError, MCPError, ValueError, ExceptionGroup):
        return None


async def bug(prompt: str) -> str:
    return UNAVAILABLE if await _book() is None else "Your room is booked for 15:00."


async def twin(prompt: str) -> str:
    result = await _book()
    if result is None or result.is_error:
        return UNAVAILABLE
    text = " ".join(part.text for part in result.content if isinstance(part, TextContent))
    room = re.fullmatch(r"Room (\S+) is yours\.", text)
    return UNAVAILABLE if room is None else f"Room {room[1]} is booked for 15:00."
