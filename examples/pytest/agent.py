"""A parcel tracker: OpenAI's SDK, and one tool that asks the carrier's web service.

$ python agent.py "Where is parcel P-301?"        needs OPENAI_API_KEY and CARRIER_URL
"""

import json
import os
import sys

import httpx
from openai import OpenAI

client = OpenAI()

TRACK = {
    "type": "function",
    "function": {
        "name": "track",
        "description": "Where a parcel is.",
        "parameters": {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
    },
}


def track(parcel: str) -> dict:
    try:
        reply = httpx.get(f"{os.environ['CARRIER_URL']}/parcels/{parcel}", timeout=5)
        reply.raise_for_status()
        return reply.json()
    except (httpx.HTTPError, ValueError) as error:
        return {"error": f"the carrier is unavailable: {type(error).__name__}"}


def answer(text: str) -> str:
    messages = [{"role": "user", "content": text}]
    while True:
        reply = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=[TRACK])
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = track(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})


if __name__ == "__main__":
    print(answer(sys.argv[1]))
