"""A currency assistant: a pydantic-ai agent whose tool asks a web service for the rate.

Needs OPENAI_API_KEY and RATES_URL.
"""

import os

import httpx
from pydantic_ai import Agent

RATES_URL = os.environ["RATES_URL"]

agent = Agent("openai:gpt-4o-mini", instructions="Convert amounts. Always look up the rate.")


@agent.tool_plain
def exchange_rate(base: str, quote: str) -> float:
    """How much one unit of the base currency is in the quote currency."""
    reply = httpx.get(f"{RATES_URL}/rates", params={"base": base, "quote": quote}, timeout=5)
    return reply.json().get("rate", 1.0)


async def answer(text: str) -> str:
    return (await agent.run(text)).output
