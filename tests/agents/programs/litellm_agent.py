"""A tool loop by hand, over LiteLLM."""

import json
import os

import litellm
from tools import search, seats

litellm.telemetry = False
FUNCTIONS = {"search": search, "seats": seats}


def schema(name, argument):
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def complete(messages, **options):
    return litellm.completion(
        "openai/gpt-4o",
        messages,
        api_base=f"{os.environ['UPSTREAM_URL']}/v1",
        api_key="test",
        tools=[schema("search", "to"), schema("seats", "flight")],
        **options,
    )


def answer(text):
    messages = [{"role": "user", "content": text}]
    while True:
        said = complete(messages).choices[0].message
        if not said.tool_calls:
            return said.content
        messages.append(said.model_dump(include={"role", "content", "tool_calls"}))
        for call in said.tool_calls:
            try:
                result = json.dumps(FUNCTIONS[call.function.name](**json.loads(call.function.arguments)))
            except Exception as error:
                result = f"Error: {error}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


async def stream(text):
    reply = await litellm.acompletion(
        "openai/gpt-4o",
        [{"role": "user", "content": text}],
        api_base=f"{os.environ['UPSTREAM_URL']}/v1",
        api_key="test",
        stream=True,
    )
    async for chunk in reply:
        if word := chunk.choices[0].delta.content:
            yield word
