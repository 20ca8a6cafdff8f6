"""A refund desk: OpenAI's SDK, a tool loop, and two tools that are plain functions.

$ python agent.py "Please refund order A-1042."       needs OPENAI_API_KEY
"""

import json
import sys

from openai import OpenAI

client = OpenAI()

ORDERS = {"A-1042": {"item": "cup", "price_eur": 18.5}, "B-7730": {"item": "lamp", "price_eur": 79.0}}
PAYMENTS = []


def get_order(order: str) -> dict:
    """Look up an order."""
    return ORDERS[order]


def refund(order: str, amount_eur: float) -> dict:
    """Pay money back."""
    PAYMENTS.append((order, amount_eur))
    return {"status": "paid", "amount_eur": amount_eur}


TOOLS = {"get_order": get_order, "refund": refund}

ORDER = {"order": {"type": "string"}}
PARAMETERS = {"get_order": ORDER, "refund": {**ORDER, "amount_eur": {"type": "number"}}}
FUNCTIONS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": function.__doc__,
            "parameters": {"type": "object", "properties": PARAMETERS[name], "required": list(PARAMETERS[name])},
        },
    }
    for name, function in TOOLS.items()
]


def use(name: str, arguments: str) -> dict:
    """Call a tool; they fail at times, so try again."""
    error = "unknown"
    for _ in range(3):
        try:
            return TOOLS[name](**json.loads(arguments))
        except Exception as problem:
            error = str(problem)
    return {"error": error}


def answer(text: str) -> str:
    messages = [{"role": "system", "content": "You run a shop's refund desk."}, {"role": "user", "content": text}]
    while True:
        reply = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=FUNCTIONS)
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = use(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


if __name__ == "__main__":
    print(answer(sys.argv[1]))
