"""An agent of two turns: it asks a model, searches what it is told to, and asks again.

SDK is openai, responses, anthropic, or plain for none at all. HOW is sync, async, stream, astream or threads (three
such conversations side by side). SEARCH_URL is where it searches.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace

SDK, HOW = os.environ.get("SDK", "openai"), os.environ.get("HOW", "sync")
STREAM = "stream" in HOW
TOOL = {"name": "search", "description": "Searches."}
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}


def search(arguments):
    asked = urllib.request.Request(
        os.environ["SEARCH_URL"], json.dumps(arguments).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return f"search failed: {error.code}"


def with_openai(question):
    """A conversation: yields requests, is sent messages, returns the answer."""
    turns = [{"role": "user", "content": question}]
    tools = [{"type": "function", "function": {**TOOL, "parameters": SCHEMA}}]
    while True:
        message = yield {"model": "gpt-4o", "messages": turns, "tools": tools}
        if not message.tool_calls:
            return message.content
        turns.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in message.tool_calls:
            found = search(json.loads(call.function.arguments))
            turns.append({"role": "tool", "tool_call_id": call.id, "content": found})


def with_anthropic(question):
    turns = [{"role": "user", "content": question}]
    tools = [{**TOOL, "input_schema": SCHEMA}]
    while True:
        message = yield {"model": "claude", "max_tokens": 500, "messages": turns, "tools": tools}
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in message.content if block.type == "text")
        turns.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]})
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": search(c.input)} for c in calls]
        turns.append({"role": "user", "content": results})


def with_responses(question):
    """The provider keeps the conversation."""
    asked, before = [{"role": "user", "content": question}], {}
    tools = [{"type": "function", **TOOL, "parameters": SCHEMA}]
    while True:
        reply = yield {"model": "gpt-4o", "input": asked, "tools": tools, **before}
        before = {"previous_response_id": reply.id}
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        asked = [
            {"type": "function_call_output", "call_id": c.call_id, "output": search(json.loads(c.arguments))}
            for c in calls
        ]


TALKS = {
    "openai": with_openai,
    "plain": with_openai,
    "responses": with_responses,
    "anthropic": with_anthropic,
}


def ask(client, request):
    if SDK == "anthropic":
        if STREAM:
            with client.messages.stream(**request) as stream:
                return stream.get_final_message()
        return client.messages.create(**request)
    if SDK == "responses":
        if STREAM:
            with client.responses.stream(**request) as stream:
                return stream.get_final_response()
        return client.responses.create(**request)
    if STREAM:
        with client.chat.completions.stream(**request) as stream:
            return stream.get_final_completion().choices[0].message
    return client.chat.completions.create(**request).choices[0].message


async def aask(client, request):
    if SDK == "anthropic":
        if STREAM:
            async with client.messages.stream(**request) as stream:
                return await stream.get_final_message()
        return await client.messages.create(**request)
    if SDK == "responses":
        if STREAM:
            async with client.responses.stream(**request) as stream:
                return await stream.get_final_response()
        return await client.responses.create(**request)
    if STREAM:
        async with client.chat.completions.stream(**request) as stream:
            return (await stream.get_final_completion()).choices[0].message
    return (await client.chat.completions.create(**request)).choices[0].message


class Plain(SimpleNamespace):
    """A message of OpenAI's, without OpenAI's SDK."""

    def model_dump(self, **_):
        return {"role": "assistant", "content": self.content, "tool_calls": self.calls}


def plainly(_, request):
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    asked = urllib.request.Request(url, json.dumps(request).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as reply:
        message = json.loads(reply.read())["choices"][0]["message"]
    calls = message.get("tool_calls") or []
    named = [SimpleNamespace(id=c["id"], function=SimpleNamespace(**c["function"])) for c in calls]
    return Plain(content=message.get("content"), tool_calls=named, calls=calls)


def client_of():
    if SDK == "plain":
        return None
    import anthropic
    import openai

    return anthropic.Anthropic() if SDK == "anthropic" else openai.OpenAI()


def talk(question):
    with client_of() or contextlib.nullcontext() as client:
        steps = TALKS[SDK](question)
        request = next(steps)
        while True:
            try:
                request = steps.send((plainly if SDK == "plain" else ask)(client, request))
            except StopIteration as stop:
                return stop.value


async def atalk(question):
    import anthropic
    import openai

    async with anthropic.AsyncAnthropic() if SDK == "anthropic" else openai.AsyncOpenAI() as client:
        steps = TALKS[SDK](question)
        request = next(steps)
        while True:
            try:
                request = steps.send(await aask(client, request))
            except StopIteration as stop:
                return stop.value


def main():
    question = os.environ.get("QUESTION") or sys.stdin.read() or "a flight to Oslo"
    if HOW == "threads":
        answers = {}
        cities = ["Oslo", "Bergen", "Rome"]
        threads = [
            threading.Thread(target=lambda c=city: answers.update({c: talk(f"a flight to {c}")})) for city in cities
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(" | ".join(answers[city] for city in cities))
    else:
        print(asyncio.run(atalk(question)) if HOW in ("async", "astream") else talk(question))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"the agent failed: {error}")
