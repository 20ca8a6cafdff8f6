"""Crashes on partial JSON: the arguments of a tool call are cut off, and `json.loads` ends the agent. Its twin asks the
model again, once."""

import json

from corpus_kit import MODEL, TOOL_FAILURES, UNAVAILABLE, model, tool
from openai import OpenAIError

TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


def _arguments(prompt: str) -> str:
    with model() as client:
        reply = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": f"CALL {prompt}"}], tools=TOOLS
        )
    calls = reply.choices[0].message.tool_calls if reply.choices else None
    return calls[0].function.arguments if calls else ""


def _search(arguments: dict[str, str]) -> str:
    try:
        return f"The flight costs {tool('search', **arguments)['price']} EUR."
    except TOOL_FAILURES:
        return UNAVAILABLE


def bug(prompt: str) -> str:
    try:
        text = _arguments(prompt)
    except OpenAIError:
        return UNAVAILABLE
    return _search(json.loads(text)) if text else UNAVAILABLE


def twin(prompt: str) -> str:
    for _ in range(2):
        try:
            return _search(json.loads(_arguments(prompt)))
        except (OpenAIError, ValueError, TypeError):
            continue
    return UNAVAILABLE
