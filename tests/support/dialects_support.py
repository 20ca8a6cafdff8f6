"""The same small agent over every provider's own SDK, and a scripted model behind it.

The agent has a system prompt and one tool that is a plain function; it is a tool loop as people write it. The model is
a function of what it hears (the whole request as text, without the escapes of JSON): it asks for tools or says
something, and the upstream spells that for the SDK that asked, whole or streamed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import google.genai as genai
import ollama
import openai

import wire_ollama
import wire_responses
from flakestorm.boundary import inprocess
from results_support import Run
from upstream import (
    Canned,
    Request,
    Upstream,
    anthropic_messages,
    anthropic_stream,
    document,
    openai_chat,
    openai_stream,
    sse,
)

__all__ = ["AGENTS", "PATHS", "RESULT", "SYSTEM", "USER", "Asks", "Brain", "Tools", "ask", "calm", "script"]

SYSTEM, USER = "Be kind.", "A flight to Oslo for 2"
RESULT = '{"price": 120, "note": "cheap and fast"}'


@dataclass(frozen=True)
class Asks:
    """The model asks for a tool."""

    tool: str
    arguments: dict[str, str]


Brain = Callable[[str, bool], str | Asks]
"""From what the model hears, and whether a tool has answered it yet, to what it does."""

Tools = Callable[[str, dict[str, Any]], str]


def calm(_heard: str, answered: bool) -> str | Asks:
    """Asks for `search` once, and then books."""
    return "Booked for 120." if answered else Asks("search", {"to": "Oslo"})


def found(_name: str, _arguments: dict[str, Any]) -> str:
    return RESULT


def script(up: Upstream, brain: Brain = calm) -> None:
    """Have every provider think with this brain."""
    for dialect, path in PATHS.items():
        spell = _SPELLINGS[dialect]

        def answer(request: Request, spell: Callable[..., Canned] = spell) -> Canned:
            asked = request.json()
            said = brain("\n".join(_strings(asked)), _answered(asked))
            return spell(asked, said, "stream" in request.path or asked.get("stream", False))

        for each in path:
            up.reply(each, answer)


def ask(up: Upstream, run: Run, dialect: str, *, stream: bool, tools: Tools = found) -> tuple[list[Any], list[bytes]]:
    """What the SDK showed the agent, reply by reply, and the requests that reached the provider."""
    before = len(up.requests)
    with inprocess.held(), run.crossing.active():
        shown = AGENTS[dialect](up, stream, tools)
    return shown, [request.body for request in up.requests[before:] if request.path in PATHS[dialect]]


def _with_chat(up: Upstream, stream: bool, tools: Tools) -> list[Any]:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    shown: list[Any] = []
    with openai.OpenAI(base_url=f"{up.url}/v1", api_key="test", max_retries=1) as client:
        while len(shown) < 6:
            if stream:
                with client.chat.completions.stream(model="gpt-4o", messages=messages) as events:
                    message = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message
            shown.append(message.content or [(c.function.name, c.function.arguments) for c in message.tool_calls or ()])
            if not message.tool_calls:
                break
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            for call in message.tool_calls:
                result = tools(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return shown


def _with_responses(up: Upstream, stream: bool, tools: Tools) -> list[Any]:
    history: list[Any] = [{"role": "user", "content": USER}]
    shown: list[Any] = []
    with openai.OpenAI(base_url=f"{up.url}/v1", api_key="test", max_retries=1) as client:
        while len(shown) < 6:
            request: dict[str, Any] = {"model": "gpt-5", "instructions": SYSTEM, "input": history}
            if stream:
                events = client.responses.create(**request, stream=True)
                reply = next(event.response for event in events if event.type == "response.completed")
            else:
                reply = client.responses.create(**request)
            calls = [item for item in reply.output if item.type == "function_call"]
            shown.append(reply.output_text or [(call.name, call.arguments) for call in calls])
            if not calls:
                break
            history += [item.model_dump(exclude_none=True) for item in reply.output]
            for call in calls:
                result = tools(call.name, json.loads(call.arguments))
                history.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return shown


def _with_anthropic(up: Upstream, stream: bool, tools: Tools) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": USER}]
    shown: list[Any] = []
    with anthropic.Anthropic(base_url=up.url, api_key="test", max_retries=1) as client:
        while len(shown) < 6:
            request: dict[str, Any] = {"model": "claude", "max_tokens": 99, "system": SYSTEM, "messages": messages}
            if stream:
                with client.messages.stream(**request) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**request)
            calls = [block for block in reply.content if block.type == "tool_use"]
            text = "".join(block.text for block in reply.content if block.type == "text")
            shown.append(text or [(call.name, json.dumps(call.input)) for call in calls])
            if not calls:
                break
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": tools(call.name, dict(call.input))}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
    return shown


def _with_gemini(up: Upstream, stream: bool, tools: Tools) -> list[Any]:
    types = genai.types
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=USER)])]
    config = types.GenerateContentConfig(system_instruction=SYSTEM)
    shown: list[Any] = []
    client = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=up.url, api_version="v1"))
    try:
        while len(shown) < 6:
            request: dict[str, Any] = {"model": "gemini", "contents": contents, "config": config}
            if stream:
                replies = list(client.models.generate_content_stream(**request))
            else:
                replies = [client.models.generate_content(**request)]
            parts = [part for reply in replies for part in reply.candidates[0].content.parts or ()]
            calls = [part.function_call for part in parts if part.function_call]
            text = "".join(part.text or "" for part in parts)
            shown.append(text or [(call.name, json.dumps(call.args)) for call in calls])
            if not calls:
                break
            contents.append(types.Content(role="model", parts=parts))
            answers = [
                types.Part.from_function_response(
                    name=call.name, response={"result": tools(call.name, dict(call.args))}
                )
                for call in calls
            ]
            contents.append(types.Content(role="user", parts=answers))
    finally:
        client.close()
    return shown


def _with_ollama(up: Upstream, stream: bool, tools: Tools) -> list[Any]:
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    shown: list[Any] = []
    client = ollama.Client(host=up.url)
    try:
        while len(shown) < 6:
            reply = client.chat(model="qwen3", messages=messages, stream=stream)
            chunks = list(reply) if stream else [reply]
            text = "".join(chunk.message.content or "" for chunk in chunks)
            calls = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
            functions = [call.function for call in calls]
            shown.append(text or [(f.name, json.dumps(dict(f.arguments))) for f in functions])
            if not calls:
                break
            messages.append({"role": "assistant", "content": text, "tool_calls": [c.model_dump() for c in calls]})
            messages += [
                {"role": "tool", "tool_name": f.name, "content": tools(f.name, dict(f.arguments))} for f in functions
            ]
    finally:
        client._client.close()
    return shown


AGENTS: dict[str, Callable[[Upstream, bool, Tools], list[Any]]] = {
    "openai_chat": _with_chat,
    "openai_responses": _with_responses,
    "anthropic": _with_anthropic,
    "gemini": _with_gemini,
    "ollama": _with_ollama,
}
PATHS = {
    "openai_chat": ("/v1/chat/completions",),
    "openai_responses": ("/v1/responses",),
    "anthropic": ("/v1/messages",),
    "gemini": ("/v1/models/gemini:generateContent", "/v1/models/gemini:streamGenerateContent"),
    "ollama": ("/api/chat",),
}


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _strings(inner)]
    return [value] if isinstance(value, str) else []


def _answered(asked: dict[str, Any]) -> bool:
    marks = ('"role": "tool"', "function_call_output", "tool_result", "functionResponse")
    return any(mark in json.dumps(asked) for mark in marks)


def _chat(_asked: Any, said: str | Asks, stream: bool) -> Canned:
    make = openai_stream if stream else openai_chat
    return make(said) if isinstance(said, str) else make(tool_calls=[("call_1", said.tool, said.arguments)])


def _responses(_asked: Any, said: str | Asks, stream: bool) -> Canned:
    item = (
        wire_responses.message(said)
        if isinstance(said, str)
        else wire_responses.tool(said.tool, json.dumps(said.arguments))
    )
    if not stream:
        return document(json.loads(wire_responses.whole(item)))
    return Canned((wire_responses.streamed(item),), 200, (("Content-Type", "text/event-stream"),), chunked=True)


def _messages(_asked: Any, said: str | Asks, stream: bool) -> Canned:
    make = anthropic_stream if stream else anthropic_messages
    return make(said) if isinstance(said, str) else make(tool_calls=[("toolu_1", said.tool, said.arguments)])


def _gemini(_asked: Any, said: str | Asks, stream: bool) -> Canned:
    part = {"text": said} if isinstance(said, str) else {"functionCall": {"name": said.tool, "args": said.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    reply = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}}
    return sse([reply]) if stream else document(reply)


def _ollama(asked: Any, said: str | Asks, _stream: bool) -> Canned:
    whole = wire_ollama.chat(said) if isinstance(said, str) else wire_ollama.chat("", (said.tool, said.arguments))
    if asked.get("stream") is False:
        return document(whole)
    return Canned(tuple(wire_ollama.lines(whole)), 200, wire_ollama.NDJSON, chunked=True)


_SPELLINGS: dict[str, Callable[[Any, str | Asks, bool], Canned]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
    "ollama": _ollama,
}
