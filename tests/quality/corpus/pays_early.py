"""Streamed tool calls: each is made as soon as its arguments are whole. When the stream breaks after that, the model is
asked again and the payment is made again. Its twin makes none before the stream has ended well."""

import json

from corpus_kit import MODEL, TOOL_FAILURES, UNAVAILABLE, model, tool
from httpx import TransportError
from openai import OpenAIError

NAMES = ("pay", "search")
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in NAMES]


def _arguments(text: str) -> dict[str, str] | None:
    try:
        return dict(json.loads(text))
    except ValueError:
        return None


def _turn(prompt: str, *, early: bool) -> str:
    """One answer of the model, as it comes in."""
    asked, said, finish = dict[int, str](), dict[int, str](), None

    def make(number: int) -> None:
        arguments = _arguments(said[number])
        if number not in asked and arguments is not None:
            try:
                asked[number] = str(tool(NAMES[number], **arguments))
            except TOOL_FAILURES:
                asked[number] = UNAVAILABLE

    with model() as client:
        messages = [{"role": "user", "content": f"CALL BOTH {prompt}"}]
        for event in client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS, stream=True):
            for choice in event.choices:
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or ():
                    said[call.index] = said.get(call.index, "") + (call.function.arguments or "")
                    if early:
                        make(call.index)
    if finish != "tool_calls":
        return UNAVAILABLE
    for number in sorted(said):
        make(number)
    return UNAVAILABLE if UNAVAILABLE in asked.values() or len(asked) < 2 else f"Done: {'; '.join(asked.values())}"


def _answer(prompt: str, *, early: bool) -> str:
    for _ in range(2):
        try:
            return _turn(prompt, early=early)
        except (OpenAIError, TransportError):
            continue
    return UNAVAILABLE


def bug(prompt: str) -> str:
    return _answer(prompt, early=True)


def twin(prompt: str) -> str:
    return _answer(prompt, early=False)
