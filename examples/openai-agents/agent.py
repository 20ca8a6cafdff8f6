"""A help desk of two agents, made with OpenAI's Agents SDK: one finds out who is responsible, one knows the bills.

Needs OPENAI_API_KEY and BILLING_URL.
"""

import os

import httpx
from agents import Agent, Runner, function_tool

BILLING_URL = os.environ["BILLING_URL"]


@function_tool
def invoice(number: str) -> str:
    """Look up an invoice."""
    reply = httpx.get(f"{BILLING_URL}/invoices/{number}", timeout=5)
    reply.raise_for_status()
    return reply.text


billing = Agent(
    name="Billing",
    model="gpt-4o-mini",
    handoff_description="Knows invoices and payments.",
    instructions="Answer questions about invoices. Always look the invoice up.",
    tools=[invoice],
)
desk = Agent(
    name="Desk",
    model="gpt-4o-mini",
    instructions="Hand the customer over to whoever can help.",
    handoffs=[billing],
)


async def answer(text: str) -> str:
    return (await Runner.run(desk, text)).final_output
