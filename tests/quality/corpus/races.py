"""A race between parallel tools: results are taken in the order in which they come. Its twin knows which is which."""

import asyncio

from corpus_kit import TOOL_FAILURES, UNAVAILABLE, tool_async


async def _later(name: str) -> dict[str, object]:
    await asyncio.sleep(0.05)
    return await tool_async(name)


async def bug(prompt: str) -> str:
    order: list[dict[str, object]] = []

    async def keep(job: object) -> None:
        order.append(await job)  # type: ignore[misc]

    try:
        await asyncio.gather(keep(tool_async("weather")), keep(_later("stock")))
    except TOOL_FAILURES:
        return UNAVAILABLE
    return f"Weather: {order[0].get('value')}. Stock: {order[1].get('value')}."


async def twin(prompt: str) -> str:
    try:
        weather, stock = await asyncio.gather(tool_async("weather"), _later("stock"))
    except TOOL_FAILURES:
        return UNAVAILABLE
    return f"Weather: {weather.get('value')}. Stock: {stock.get('value')}."
